"""Where sentences, citations and markers stand in written text, by example."""

import pytest

from core.domain.answers import Answer
from query.answers.writing.written_text import HeldText, LiveText, Shown
from tests.written_text import GIVEN, QUOTES, make_draft


def live(text: str) -> Answer:
    draft = make_draft()
    way = LiveText(draft, GIVEN, Shown(GIVEN))
    list(way.push(text))
    list(way.end(is_cut=False))
    return draft.finished()


def held(text: str, *, is_cut: bool = False) -> Answer:
    draft = make_draft()
    way = HeldText(draft, GIVEN, Shown(GIVEN), QUOTES)
    list(way.push(text))
    list(way.end(is_cut=is_cut))
    return draft.finished()


def cited(answer: Answer) -> list[tuple[str, str]]:
    """For each citation the text it supports and the beginning of its quote."""
    return [
        (answer.text[c.start : c.end], str(c.sources[0].quote).split(" ", 2)[1])
        for c in answer.citations
    ]


def test_a_marker_supports_what_stands_before_it() -> None:
    text = "The pumps are tested yearly [1] and valves are painted red [2]. That is all."
    answer = live(text)
    assert answer.text == text
    assert cited(answer) == [
        ("The pumps are tested yearly", "pumps"),
        ("The pumps are tested yearly [1] and valves are painted red", "are"),
    ]
    assert [answer.text[s.start : s.end] for s in answer.sentences] == [
        "The pumps are tested yearly [1] and valves are painted red [2].",
        "That is all.",
    ]
    assert [s.citation_ids for s in answer.sentences] == [("c1", "c2"), ()]


@pytest.mark.parametrize(
    "text", ["The pumps are tested yearly. [1]", "[1] The pumps are tested yearly."]
)
def test_a_marker_outside_its_sentence_supports_all_of_it(text: str) -> None:
    answer = live(text)
    assert answer.text == text
    assert cited(answer) == [("The pumps are tested yearly.", "pumps")]


def test_markers_of_neighbours_are_kept_apart() -> None:
    answer = live("The pumps are tested yearly [1]. The pumps are tested yearly [1].")
    assert [s.citation_ids for s in answer.sentences] == [("c1",), ("c2",)]
    assert answer.citations[1].start == answer.sentences[1].start


def test_markers_that_open_lines_belong_to_their_lines() -> None:
    answer = live("[1] The pumps are tested yearly.\n[2] Valves are painted red.")
    assert cited(answer) == [
        ("The pumps are tested yearly.", "pumps"),
        ("Valves are painted red.", "are"),
    ]


def test_a_marker_alone_is_the_last_sentences() -> None:
    answer = live("The pumps are tested yearly.\n\n[1]")
    assert answer.text == "The pumps are tested yearly.\n\n[1]"
    assert cited(answer) == [("The pumps are tested yearly.", "pumps")]


def test_nothing_but_a_marker_supports_nothing() -> None:
    answer = live("[2]")
    assert answer.text == "[1]"
    (citation,) = answer.citations
    assert (citation.start, citation.end, citation.verdict.value) == (0, 0, "unsupported")


def test_a_phrase_that_names_its_passage_stays_as_it_was_sent() -> None:
    text = "According to [1], the pumps are tested yearly by the operator."
    answer = live(text)
    assert answer.text == text
    (sentence,) = answer.sentences
    assert (sentence.start, sentence.end) == (0, len(text))
    assert sentence.verdict.value == "supported"


def test_held_sentences_are_tidied_and_their_markers_stand_behind_them() -> None:
    answer = held(
        "According to [3], the notice period is 3 months.  \n\n\n"
        "The pumps [1] are tested yearly by the operator."
    )
    assert answer.text == (
        "The notice period is 3 months. [1]\n\nThe pumps are tested yearly by the operator. [2]"
    )
    assert [c.n for c in answer.citations] == [1, 2]


def test_a_held_sentence_that_was_cut_off_is_not_sent() -> None:
    text = "The pumps are tested yearly [1]. Valves are painted"
    assert held(text, is_cut=True).text == "The pumps are tested yearly. [1]"
    assert "painted" in held(text).text


def test_a_citation_that_adds_nothing_is_not_shown_where_sentences_are_held() -> None:
    text = "The pumps are tested yearly by the operator [1][2]."
    assert held(text).text == "The pumps are tested yearly by the operator. [1]"
    answer = live(text)
    assert answer.text == "The pumps are tested yearly by the operator [1] [2]."
    assert [c.verdict.value for c in answer.citations] == ["supported", "unsupported"]
