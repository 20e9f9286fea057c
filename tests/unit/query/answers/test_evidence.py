"""Which words are quoted: readable by themselves, few, and never twice."""

import pytest

from core.chunk_sentences import chunk_sentences
from core.domain.pages import Chunk
from core.domain.search import Passage
from query.answers.evidence import (
    RUNNER_UP_MARGIN,
    Evidence,
    choose_evidence,
    make_readable,
    reading_order,
)
from query.retrieval.coverage import weigh
from query.retrieval.questions import analyse
from query.retrieval.reranking import Reranked, ScoredSentence
from query.retrieval.search import Retrieved
from tests.passages import make_chunk, make_passage, make_scored


def readable(text: str | Chunk, ordinal: int) -> str | None:
    evidence = make_readable(make_scored(make_passage(text), ordinal))
    return None if evidence is None else evidence.text


def reranked(*sentences: ScoredSentence) -> Reranked:
    question = analyse("What?")
    ordered = sorted(sentences, key=lambda item: -item.answer_score)
    passages = tuple({s.sentence.passage.point_id: s.sentence.passage for s in ordered}.values())
    retrieved = Retrieved(question, (), (), passages, {}, 1)
    return Reranked(retrieved, passages, tuple(ordered), weigh(question, passages))


@pytest.mark.parametrize(
    ("text", "ordinal", "quote"),
    [
        ("Pumps are tested yearly. A log is kept.", 1, "A log is kept."),
        # one that leans on its predecessor takes it along
        ("The PX-200 needs oil. It takes two litres.", 1,
         "The PX-200 needs oil. It takes two litres."),
        ("Die Pumpe braucht Öl. Sie fasst zwei Liter.", 1,
         "Die Pumpe braucht Öl. Sie fasst zwei Liter."),
        ("It takes two litres. Close the lid.", 0, "It takes two litres."),
        # a question, an introduction and a heading take what follows
        ("How is it reset? Hold both keys.", 0, "How is it reset? Hold both keys."),
        ("You need:\nsafety shoes.", 0, "You need:\nsafety shoes."),
        ("Opening hours\nWe open at nine.", 0, "Opening hours\nWe open at nine."),
        ("We open at nine.\nOpening hours", 1, None),
        # but a list item or a line with a figure stands by itself
        ("- Safety shoes\nClose the lid.", 0, "- Safety shoes"),
        ("Noise 72 dB\nClose the lid.", 0, "Noise 72 dB"),
        # rows between paragraphs: the first is their header
        ("See below.\nModel | Weight\nPX | 45 kg", 1, None),
        ("See below.\nModel | Weight\nPX | 45 kg", 2, "PX | 45 kg"),
        ("See below.\nPX | 45 kg\nClose the lid.", 1, "PX | 45 kg"),
    ],
)  # fmt: skip
def test_readable_by_itself(text: str, ordinal: int, quote: str | None) -> None:
    assert readable(text, ordinal) == quote


def test_a_table_is_quoted_by_the_row_and_never_by_its_header() -> None:
    table = make_chunk("Model | Weight\nPX-200 | 45 kg\nPX-300 | 61 kg", is_table=True)
    assert readable(table, 0) is None
    assert readable(table, 2) == "PX-300 | 61 kg"
    assert [s.heading for s in chunk_sentences(table)] == ["", "Model | Weight", "Model | Weight"]


def test_one_quote_when_it_is_clearly_best() -> None:
    good = make_passage("Pumps are tested yearly.", "p1")
    poor = make_passage("Valves are painted red.", "p2")
    found = choose_evidence(
        reranked(
            make_scored(good, 0, cosine=0.8),
            make_scored(poor, 0, cosine=0.8 - RUNNER_UP_MARGIN - 0.01),
        ),
        3,
    )
    assert [item.text for item in found] == ["Pumps are tested yearly."]


def test_runners_up_that_come_close_are_quoted_too_up_to_the_limit() -> None:
    passages = [make_passage(f"Pump {i} is tested yearly.", f"p{i}") for i in range(4)]
    sentences = [
        make_scored(passage, 0, cosine=0.8 - 0.01 * i) for i, passage in enumerate(passages)
    ]
    found = choose_evidence(reranked(*sentences), 3)
    assert [item.passage.point_id for item in found] == ["p0", "p1", "p2"]


def test_the_same_words_are_quoted_once() -> None:
    first, copy = make_passage("Pumps are  tested.", "p1"), make_passage("Pumps are tested.", "p2")
    assert (
        len(
            choose_evidence(
                reranked(make_scored(first, 0, cosine=0.8), make_scored(copy, 0, cosine=0.79)), 3
            )
        )
        == 1
    )


def test_a_passage_is_quoted_once() -> None:
    passage = make_passage("The PX-200 needs oil. It takes two litres.")
    found = choose_evidence(
        reranked(make_scored(passage, 1, cosine=0.8), make_scored(passage, 0, cosine=0.79)), 3
    )
    assert [item.text for item in found] == ["The PX-200 needs oil. It takes two litres."]


def test_sentences_that_nothing_was_compared_with_are_no_evidence() -> None:
    passage = make_passage("Pumps are tested yearly.")
    assert choose_evidence(reranked(make_scored(passage, 0, cosine=None)), 3) == []
    assert choose_evidence(reranked(), 3) == []


def test_quotes_of_one_passage_are_in_reading_order_and_passages_best_first() -> None:
    one = make_passage("Alpha is first. Beta is second.", "p1")
    two = make_passage("Gamma is third.", "p2")

    def evidence(passage: Passage, ordinal: int) -> Evidence:
        found = make_readable(make_scored(passage, ordinal))
        assert found is not None
        return found

    ordered = reading_order([evidence(one, 1), evidence(two, 0), evidence(one, 0)])
    assert [item.text for item in ordered] == [
        "Alpha is first.",
        "Beta is second.",
        "Gamma is third.",
    ]
