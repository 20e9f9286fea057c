"""Taking a document's words out of an answer, for answers of any shape."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.adapters.catalog.redaction import REDACTED, redact_answer, redact_events

DOCUMENTS = ("doc_1", "doc_2", "doc_3")
quotes = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=REDACTED), min_size=1)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """Sentences, each a quote of one or two documents, with markers between them."""
    sources = [
        {"id": f"s{place}", "document_id": draw(st.sampled_from(DOCUMENTS)), "title": "T"}
        for place in range(draw(st.integers(0, 4)))
    ]
    text = draw(st.sampled_from(["", "In short: "]))
    citations = []
    for number in range(draw(st.integers(0, 5)) if sources else 0):
        quote = draw(quotes)
        cited = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2))
        start = len(text)
        text += quote
        citations.append(
            {
                "id": f"c{number}",
                "start": start,
                "end": len(text),
                "sources": [
                    {"source_id": source["id"], "quote": quote, "locations": [{"page": 1}]}
                    for source in cited
                ],
            }
        )
        text += f" [{number}] "
    return {"id": "ans_1", "text": text, "citations": citations, "sources": sources}


def quoted(answer: dict[str, Any]) -> list[tuple[dict[str, Any], list[str]]]:
    """Each citation with the documents that it quotes."""
    document_of = {source["id"]: source["document_id"] for source in answer["sources"]}
    return [
        (citation, [document_of[one["source_id"]] for one in citation["sources"]])
        for citation in answer["citations"]
    ]


@given(answers(), st.sets(st.sampled_from(DOCUMENTS)))
def test_nothing_of_the_deleted_is_left_and_nothing_else_is_touched(
    answer: dict[str, Any], deleted: set[str]
) -> None:
    before = copy.deepcopy(answer)
    redacted = redact_answer(answer, deleted)
    assert answer == before
    assert len(redacted["text"]) == len(answer["text"])
    untouched = list(answer["text"])
    for (citation, documents), after in zip(quoted(answer), redacted["citations"], strict=True):
        shown = redacted["text"][citation["start"] : citation["end"]]
        if deleted & set(documents):
            assert set(shown) == {REDACTED}
            untouched[citation["start"] : citation["end"]] = list(shown)
        for document, old, new in zip(
            documents, citation["sources"], after["sources"], strict=True
        ):
            if document in deleted:
                assert new == {
                    "source_id": old["source_id"],
                    "quote": None,
                    "deleted": True,
                    "locations": [],
                }
            else:
                assert new == old
        assert {**after, "sources": None} == {**citation, "sources": None}
    assert redacted["text"] == "".join(untouched)
    assert redacted["sources"] == answer["sources"]


@given(answers(), st.sets(st.sampled_from(DOCUMENTS)), st.sets(st.sampled_from(DOCUMENTS)))
def test_the_order_of_deletes_does_not_matter(
    answer: dict[str, Any], first: set[str], second: set[str]
) -> None:
    at_once = redact_answer(answer, first | second)
    assert redact_answer(redact_answer(answer, first), second) == at_once
    assert redact_answer(at_once, first) == at_once


@given(answers())
def test_only_events_with_the_whole_answer_survive(answer: dict[str, Any]) -> None:
    redacted = redact_answer(answer, set(DOCUMENTS))
    events: list[tuple[int, dict[str, Any]]] = [
        (1, {"event": "answer.created", "data": {"id": answer["id"]}}),
        (2, {"event": "text.delta", "data": {"text": answer["text"]}}),
        (3, {"event": "answer.completed", "seq": 3, "data": answer}),
        (4, {"event": "answer.completed", "response": {"answer": answer}}),
        (5, {**answer, "event": "answer.completed"}),
        (6, {"event": "answer.completed", "data": {**answer, "id": "ans_2"}}),
    ]
    assert redact_events(events, redacted) == [
        (3, {"event": "answer.completed", "seq": 3, "data": redacted}),
        (4, {"event": "answer.completed", "response": {"answer": redacted}}),
        (5, {**redacted, "event": "answer.completed"}),
    ]


def test_a_written_sentence_is_covered_beyond_its_marker() -> None:
    text = "Pumps are tested yearly [1] by Ms Doe. A log is kept [2]. Nobody said so."
    answer = {
        "id": "ans_1",
        "text": text,
        "sources": [{"id": "s1", "document_id": "doc_1"}, {"id": "s2", "document_id": "doc_2"}],
        "citations": [
            {"id": "c1", "start": 0, "end": 23, "sources": [{"source_id": "s1", "quote": "Q"}]},
            {"id": "c2", "start": 39, "end": 52, "sources": [{"source_id": "s2", "quote": "R"}]},
        ],
        "sentences": [
            {"start": 0, "end": 38, "citation_ids": ["c1"]},
            {"start": 39, "end": 57, "citation_ids": ["c2"]},
            {"start": 58, "end": 73, "citation_ids": []},
        ],
    }
    redacted = redact_answer(answer, {"doc_1"})
    assert redacted["text"] == REDACTED * 38 + " A log is kept [2]. " + REDACTED * 15
    assert redact_answer(redacted, {"doc_1"}) == redacted
