"""The answer object as JSON (docs/answers.md) and back.

What is written is what is streamed, stored and reloaded. The reader is tolerant: it ignores fields
it does not know and fills in what an older release did not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from core.domain.answers import (
    SCHEMA_VERSION,
    Answer,
    AnswerMode,
    AnswerSentence,
    AnswerSource,
    AnswerStatus,
    Citation,
    CitedQuote,
    TextRange,
    Timings,
    Usage,
    Verdict,
)
from core.domain.pages import Location, Rect
from core.domain.search import RetrievalScores
from core.errors import InvalidInput

OBJECT = "pincite.answer"
_SCORE_DIGITS = 6


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """JSON values only, in the field order of the documentation."""
    return {
        "id": answer.id,
        "object": OBJECT,
        "schema_version": answer.schema_version,
        "created_at": answer.created_at,
        "question": answer.question,
        "answer_status": answer.answer_status.value,
        "mode": answer.mode.value,
        "mode_reason": answer.mode_reason,
        "conversation_id": answer.conversation_id,
        "text": answer.text,
        "citations": [citation_to_json(citation) for citation in answer.citations],
        "sentences": [sentence_to_json(sentence) for sentence in answer.sentences],
        "sources": [source_to_json(source) for source in answer.sources],
        "missing": list(answer.missing),
        "usage": asdict(answer.usage),
        "timings": {name: round(value, 1) for name, value in asdict(answer.timings).items()},
        "index_generation": answer.index_generation,
        "model": answer.model,
        "trace_id": answer.trace_id,
    }


def citation_to_json(citation: Citation) -> dict[str, Any]:
    return {
        "id": citation.id,
        "n": citation.n,
        "start": citation.start,
        "end": citation.end,
        "marker": {"start": citation.marker.start, "end": citation.marker.end},
        "verdict": citation.verdict.value,
        "support_score": round(citation.support_score, _SCORE_DIGITS),
        "sources": [_quote_to_json(quote) for quote in citation.sources],
    }


def sentence_to_json(sentence: AnswerSentence) -> dict[str, Any]:
    return {
        "start": sentence.start,
        "end": sentence.end,
        "verdict": sentence.verdict.value,
        "support_score": round(sentence.support_score, _SCORE_DIGITS),
        "citation_ids": list(sentence.citation_ids),
        "is_replaced": sentence.is_replaced,
    }


def source_to_json(source: AnswerSource) -> dict[str, Any]:
    """Without `scores` where the source has none (callers without the scope `explain`)."""
    found = {
        "id": source.id,
        "document_id": source.document_id,
        "version": source.version,
        "title": source.title,
        "collection": source.collection,
        "chunk_id": source.chunk_id,
        "pages": list(source.pages),
        "page_size": {str(page): list(size) for page, size in source.page_size.items()},
        "uri": source.uri,
        "view_url": source.view_url,
    }
    if source.scores is not None:
        found["scores"] = scores_to_json(source.scores)
    return found


def scores_to_json(scores: RetrievalScores) -> dict[str, Any]:
    return {
        name: round(value, _SCORE_DIGITS) if isinstance(value, float) else value
        for name, value in asdict(scores).items()
    }


def answer_from_json(data: Mapping[str, Any]) -> Answer:
    """The answer that `answer_to_json` wrote, in this or another release.

    Raises InvalidInput for what is no answer object.
    """
    try:
        return Answer(
            id=data["id"],
            question=data.get("question", ""),
            answer_status=AnswerStatus(data["answer_status"]),
            mode=AnswerMode(data.get("mode", AnswerMode.EXTRACTIVE)),
            mode_reason=data.get("mode_reason", ""),
            conversation_id=data.get("conversation_id"),
            text=data["text"],
            citations=tuple(_citation(item) for item in data.get("citations", ())),
            sentences=tuple(_sentence(item) for item in data.get("sentences", ())),
            sources=tuple(_source(item) for item in data.get("sources", ())),
            missing=tuple(data.get("missing", ())),
            usage=Usage(**_known(Usage, data.get("usage", {}))),
            timings=Timings(**_known(Timings, data.get("timings", {}))),
            index_generation=data.get("index_generation", ""),
            model=data.get("model"),
            trace_id=data.get("trace_id", ""),
            created_at=data.get("created_at", ""),
            schema_version=data.get("schema_version", SCHEMA_VERSION),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"this is no {OBJECT} object: {type(error).__name__}") from error


def _quote_to_json(quote: CitedQuote) -> dict[str, Any]:
    found: dict[str, Any] = {
        "source_id": quote.source_id,
        "quote": quote.quote,
        "locations": [
            {
                "page": location.page,
                "start": location.start,
                "end": location.end,
                "rects": [list(rect) for rect in location.rects],
            }
            for location in quote.locations
        ],
    }
    if quote.deleted:
        found["deleted"] = True
    return found


def _citation(data: Mapping[str, Any]) -> Citation:
    return Citation(
        id=data["id"],
        n=data["n"],
        start=data["start"],
        end=data["end"],
        marker=TextRange(data["marker"]["start"], data["marker"]["end"]),
        verdict=Verdict(data["verdict"]),
        support_score=data.get("support_score", 0.0),
        sources=tuple(_quote(item) for item in data["sources"]),
    )


def _sentence(data: Mapping[str, Any]) -> AnswerSentence:
    return AnswerSentence(
        start=data["start"],
        end=data["end"],
        verdict=Verdict(data["verdict"]),
        support_score=data.get("support_score", 0.0),
        citation_ids=tuple(data.get("citation_ids", ())),
        is_replaced=bool(data.get("is_replaced", False)),
    )


def _quote(data: Mapping[str, Any]) -> CitedQuote:
    return CitedQuote(
        source_id=data["source_id"],
        quote=data["quote"],
        locations=tuple(
            Location(item["page"], item["start"], item["end"], tuple(map(_rect, item["rects"])))
            for item in data.get("locations") or ()
        ),
        deleted=bool(data.get("deleted", False)),
    )


def _source(data: Mapping[str, Any]) -> AnswerSource:
    scores = data.get("scores")
    return AnswerSource(
        id=data["id"],
        document_id=data["document_id"],
        version=data["version"],
        title=data.get("title", ""),
        collection=data.get("collection", ""),
        chunk_id=data.get("chunk_id", ""),
        pages=tuple(data.get("pages", ())),
        page_size={
            int(page): (float(size[0]), float(size[1]))
            for page, size in data.get("page_size", {}).items()
        },
        uri=data.get("uri", ""),
        view_url=data.get("view_url", ""),
        scores=None if scores is None else RetrievalScores(**_known(RetrievalScores, scores)),
    )


def _known(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in kind.__dataclass_fields__ if name in data}


def _rect(values: Any) -> Rect:
    x0, y0, x1, y1 = values
    return (float(x0), float(y0), float(x1), float(y1))
