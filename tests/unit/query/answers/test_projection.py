"""The answer object as JSON: documented fields, exact round trip, tolerant reading."""

import json
from typing import Any

import pytest

from core.domain.answers import (
    Answer,
    AnswerMode,
    AnswerSource,
    AnswerStatus,
    Citation,
    CitedQuote,
    TextRange,
    Timings,
    Verdict,
)
from core.domain.pages import Location
from core.domain.search import RetrievalScores
from core.errors import InvalidInput
from query.answers.projection import answer_from_json, answer_to_json

LOCATION = Location(7, 1841, 1902, ((0.121, 0.368, 0.879, 0.382),))
ANSWER = Answer(
    id="ans_1",
    question="How often are pumps tested?",
    answer_status=AnswerStatus.PARTIAL,
    mode=AnswerMode.EXTRACTIVE,
    text="“Pumps are tested yearly.” [1]",
    citations=(
        Citation(
            "c1", 1, 1, 25, TextRange(27, 30), Verdict.SUPPORTED, 1.0,
            (CitedQuote("s3", "Pumps are tested yearly.", (LOCATION,)),),
        ),
    ),
    sources=(
        AnswerSource(
            id="s3", document_id="doc_1", version="sha256:ab", title="Manual.pdf",
            collection="plant-a", chunk_id="p1", pages=(7,), page_size={7: (595.0, 842.0)},
            uri="s3://documents/plant-a/Manual.pdf", view_url="/view/doc_1?v=sha256:ab&cite=c1",
            scores=RetrievalScores(dense=0.71, dense_rank=1, fused=0.5),
        ),
    ),
    missing=("who tests them?",),
    timings=Timings(embed_ms=1.26, total_ms=10.0),
    index_generation="abc",
    trace_id="t1",
    created_at="2026-01-05T09:00:00+00:00",
)  # fmt: skip


def test_documented_shape() -> None:
    data = json.loads(json.dumps(answer_to_json(ANSWER)))
    assert data["object"] == "pincite.answer"
    assert data["schema_version"] == 1
    assert data["answer_status"] == "partial"
    assert data["citations"] == [
        {
            "id": "c1", "n": 1, "start": 1, "end": 25, "marker": {"start": 27, "end": 30},
            "verdict": "supported", "support_score": 1.0,
            "sources": [
                {
                    "source_id": "s3", "quote": "Pumps are tested yearly.",
                    "locations": [
                        {
                            "page": 7, "start": 1841, "end": 1902,
                            "rects": [[0.121, 0.368, 0.879, 0.382]],
                        }
                    ],
                }
            ],
        }
    ]  # fmt: skip
    (source,) = data["sources"]
    assert source["page_size"] == {"7": [595.0, 842.0]}
    assert source["scores"] == {
        "dense": 0.71, "dense_rank": 1, "lexical": None, "lexical_rank": None, "fused": 0.5,
        "rerank": None,
    }  # fmt: skip
    assert data["timings"]["embed_ms"] == 1.3
    assert data["usage"]["completion_tokens"] == 0
    assert data["model"] is None


def test_round_trip() -> None:
    data = answer_to_json(ANSWER)
    assert answer_to_json(answer_from_json(json.loads(json.dumps(data)))) == data


def test_a_source_without_scores_has_no_such_field() -> None:
    data = answer_to_json(ANSWER)
    del data["sources"][0]["scores"]
    assert answer_to_json(answer_from_json(data)) == data


def test_reads_what_it_does_not_know_and_what_is_missing() -> None:
    data = answer_to_json(ANSWER)
    data["novelty"] = {"a": 1}
    data["timings"]["novel_ms"] = 3.0
    data["sources"][0]["scores"]["novel"] = 1.0
    data["citations"][0]["sources"][0]["novel"] = True
    for name in ("usage", "missing", "trace_id", "model", "schema_version", "index_generation"):
        del data[name]
    found = answer_from_json(data)
    assert (found.text, found.missing, found.usage.prompt_tokens) == (ANSWER.text, (), 0)
    assert found.citations == ANSWER.citations


def test_reads_the_quote_of_a_deleted_document() -> None:
    data = answer_to_json(ANSWER)
    data["citations"][0]["sources"] = [
        {"source_id": "s3", "quote": None, "deleted": True, "locations": []}
    ]
    (quote,) = answer_from_json(data).citations[0].sources
    assert (quote.quote, quote.deleted, quote.locations) == (None, True, ())
    assert answer_to_json(answer_from_json(data)) == data


def without(name: str) -> dict[str, Any]:
    data = answer_to_json(ANSWER)
    del data[name]
    return data


@pytest.mark.parametrize(
    "data",
    [
        {},
        without("id"),
        without("text"),
        answer_to_json(ANSWER) | {"answer_status": "perhaps"},
        answer_to_json(ANSWER) | {"citations": [{"id": "c1"}]},
        answer_to_json(ANSWER) | {"sources": "none"},
    ],
)
def test_refuses_what_is_no_answer(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        answer_from_json(data)
