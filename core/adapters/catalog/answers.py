"""Stored answers: exactly what was sent, without what was deleted since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, select

from core.adapters.catalog.conversations import DELETED_STATUS, link
from core.adapters.catalog.database import clean, insert_new
from core.adapters.catalog.redaction import redact_answer, redact_events
from core.adapters.catalog.tables import (
    answer_documents,
    answer_events,
    answers,
    documents,
    usage,
    versions,
)
from core.domain.access import Scope
from core.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import Database
    from core.domain.access import Principal
    from core.ports.clock import Clock

_TOKENS = (
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "draft_tokens",
    "accepted_tokens",
)


class SqlAnswers:
    """Implements `core.ports.catalog.AnswerCatalog`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def store(
        self,
        principal: Principal,
        answer: dict[str, Any],
        events: Sequence[dict[str, Any]],
        document_ids: Sequence[str],
    ) -> None:
        answer_id = answer.get("id")
        if not isinstance(answer_id, str) or not answer_id:
            raise InvalidInput("an answer needs an id to be stored")

        def work(tx: Connection) -> None:
            now = self._clock.now()
            living, deleted = _split(tx, principal, answer, document_ids)
            kept, kept_events = answer, list(enumerate(events, start=1))
            if deleted:
                kept = redact_answer(answer, deleted)
                kept_events = redact_events(kept_events, kept)
            _insert_answer(tx, principal, kept, now, is_redacted=bool(deleted))
            rows = [
                {
                    "answer_id": answer_id,
                    "seq": _seq(event, place),
                    "tenant_id": principal.tenant_id,
                    "event": event,
                }
                for place, event in kept_events
            ]
            if rows:
                tx.execute(answer_events.insert(), rows)
            insert_new(
                tx,
                answer_documents,
                [
                    {
                        "answer_id": answer_id,
                        "document_id": document_id,
                        "tenant_id": principal.tenant_id,
                    }
                    for document_id in living
                ],
            )

        self._db.write(work)

    def load(self, principal: Principal, answer_id: str) -> dict[str, Any]:
        return self._db.read(lambda tx: _load(tx, principal, answer_id))

    def events(self, principal: Principal, answer_id: str, after_seq: int) -> list[dict[str, Any]]:
        def work(tx: Connection) -> list[dict[str, Any]]:
            _load(tx, principal, answer_id)
            rows = tx.execute(
                select(answer_events.c.event)
                .where(answer_events.c.answer_id == answer_id, answer_events.c.seq > after_seq)
                .order_by(answer_events.c.seq)
            )
            return [row.event for row in rows]

        return self._db.read(work)


def _load(tx: Connection, principal: Principal, answer_id: str) -> dict[str, Any]:
    query = select(answers.c.answer).where(
        answers.c.answer_id == answer_id,
        answers.c.tenant_id == principal.tenant_id,
        answers.c.answer_status != DELETED_STATUS,
    )
    if not principal.has(Scope.ADMIN):
        query = query.where(answers.c.subject == principal.subject)
    found = tx.execute(query).one_or_none()
    if found is None:
        raise NotFound("no such answer", answer_id=answer_id)
    return dict(found.answer)


def _insert_answer(
    tx: Connection,
    principal: Principal,
    answer: dict[str, Any],
    now: datetime,
    *,
    is_redacted: bool,
) -> None:
    owner = {
        "answer_id": answer["id"],
        "tenant_id": principal.tenant_id,
        "subject": principal.subject,
        "created_at": now,
    }
    row = {
        **owner,
        "conversation_id": link(tx, principal, answer),
        "answer_status": clean(str(answer.get("answer_status", "")), 40),
        "schema_version": int(answer.get("schema_version", 1)),
        "answer": answer,
        "redacted_at": now if is_redacted else None,
    }
    if insert_new(tx, answers, [row]) != 1:
        raise Conflict("an answer with this id is stored already", answer_id=answer["id"])
    spent = answer.get("usage") or {}
    counts = {name: int(spent.get(name) or 0) for name in _TOKENS}
    tx.execute(usage.insert().values(**owner, **counts, model=answer.get("model"), cost=0.0))


def _split(
    tx: Connection, principal: Principal, answer: dict[str, Any], document_ids: Sequence[str]
) -> tuple[list[str], set[str]]:
    """(documents that a later delete must look for, documents whose quotes may not be kept).

    The documents are locked against a delete until the answer is stored. A document that came back
    with other bytes since the question started counts as deleted for this answer.
    """
    sources = answer.get("sources") or []
    wanted = {*document_ids, *(s["document_id"] for s in sources if s.get("document_id"))}
    known = tx.execute(
        select(documents.c.document_id, documents.c.deleted_at)
        .where(
            documents.c.document_id.in_(sorted(wanted)),
            documents.c.tenant_id == principal.tenant_id,
        )
        .order_by(documents.c.document_id)
        .with_for_update(read=True)
    ).all()
    deleted = {row.document_id for row in known if row.deleted_at is not None}
    living = [row.document_id for row in known if row.deleted_at is None]
    for source in sources:
        document_id = source.get("document_id")
        if document_id in living and not _has_version(tx, document_id, source.get("version")):
            deleted.add(document_id)
    return living, deleted


def _has_version(tx: Connection, document_id: str, version: object) -> bool:
    """Whether that content of the document was not deleted (True when none is named)."""
    if not isinstance(version, str) or not version.startswith("sha256:"):
        return True
    kept = exists().where(
        and_(
            versions.c.document_id == document_id,
            versions.c.sha256 == version.removeprefix("sha256:"),
            versions.c.deleted_at.is_(None),
        )
    )
    return bool(tx.execute(select(kept)).scalar_one())


def _seq(event: dict[str, Any], place: int) -> int:
    """The number a client resumes after: the event's own, or its place from 1."""
    seq = event.get("seq")
    return seq if isinstance(seq, int) else place
