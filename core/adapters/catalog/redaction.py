"""Taking a deleted document's words out of stored answers.

What goes: the quotes and locations of every citation source of the document, the answer text that
such a citation supports, since an extractive answer repeats the quote there, and the sentences of a
written answer that cite nothing. The text is overwritten character by character, so that every
other offset of the answer stays valid.

Events that carry a piece of the text (`text.delta`, `citation.added`) are dropped; those that carry
the whole answer (`answer.completed`) stay, with the redacted answer in place. A reader who replays
the events therefore gets the same object as one who loads the answer.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select, update

from core.adapters.catalog.tables import answer_documents, answer_events, answers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from sqlalchemy import Connection

REDACTED = "█"


def redact_answer(answer: dict[str, Any], document_ids: Collection[str]) -> dict[str, Any]:
    """A copy of an answer object without any quote of these documents."""
    redacted = copy.deepcopy(answer)
    source_ids = {
        source.get("id")
        for source in redacted.get("sources") or []
        if source.get("document_id") in document_ids
    }
    text = str(redacted.get("text") or "")
    cleared: set[str] = set()
    for citation in redacted.get("citations") or []:
        cited = citation.get("sources") or []
        if not any(source.get("source_id") in source_ids for source in cited):
            continue
        citation["sources"] = [
            {"source_id": source["source_id"], "quote": None, "deleted": True, "locations": []}
            if source.get("source_id") in source_ids
            else source
            for source in cited
        ]
        text = _cover(text, int(citation.get("start", 0)), int(citation.get("end", 0)))
        cleared.add(str(citation.get("id")))
    # What a generator wrote without citing anything may tell of any document it had before it; a
    # sentence goes on after its marker.
    for sentence in redacted.get("sentences") or []:
        ids = sentence.get("citation_ids") or []
        if not ids or cleared.intersection(ids):
            text = _cover(text, int(sentence.get("start", 0)), int(sentence.get("end", 0)))
    redacted["text"] = text
    return redacted


def redact_events(
    events: Iterable[tuple[int, dict[str, Any]]], answer: dict[str, Any]
) -> list[tuple[int, dict[str, Any]]]:
    """The numbered events that carry the whole answer, with the redacted one in its place."""
    kept = ((seq, _with_answer(event, answer)) for seq, event in events)
    return [(seq, event) for seq, event in kept if event is not None]


def clear_quotes(tx: Connection, document_id: str, now: datetime) -> int:
    """Redact every stored answer that quotes the document; returns how many."""
    ids = [
        row.answer_id
        for row in tx.execute(
            select(answer_documents.c.answer_id)
            .where(answer_documents.c.document_id == document_id)
            .order_by(answer_documents.c.answer_id)
        )
    ]
    for answer_id in ids:
        stored = tx.execute(
            select(answers.c.answer).where(answers.c.answer_id == answer_id).with_for_update()
        ).scalar_one()
        redacted = redact_answer(stored, {document_id})
        tx.execute(
            update(answers)
            .where(answers.c.answer_id == answer_id)
            .values(answer=redacted, redacted_at=now)
        )
        _replace_events(tx, answer_id, redacted)
    tx.execute(delete(answer_documents).where(answer_documents.c.document_id == document_id))
    return len(ids)


def _replace_events(tx: Connection, answer_id: str, redacted: dict[str, Any]) -> None:
    rows = tx.execute(
        delete(answer_events)
        .where(answer_events.c.answer_id == answer_id)
        .returning(answer_events.c.seq, answer_events.c.tenant_id, answer_events.c.event)
    ).all()
    for seq, event in redact_events(((row.seq, row.event) for row in rows), redacted):
        tx.execute(
            answer_events.insert().values(
                answer_id=answer_id, seq=seq, tenant_id=rows[0].tenant_id, event=event
            )
        )


def _with_answer(event: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
    """The event with `answer` in place of the whole answer it carries; None if it carries none."""
    if _is_whole(event, answer):
        frame: dict[str, Any] = {n: event[n] for n in ("event", "type", "seq") if n in event}
        return {**answer, **frame}
    for name, value in event.items():
        if isinstance(value, dict):
            inner = _with_answer(value, answer)
            if inner is not None:
                return {**event, name: inner}
    return None


def _is_whole(value: dict[str, Any], answer: dict[str, Any]) -> bool:
    return value.get("id") == answer.get("id") and "citations" in value


def _cover(text: str, start: int, end: int) -> str:
    start, end = max(0, start), min(len(text), end)
    return text[:start] + REDACTED * max(0, end - start) + text[end:]
