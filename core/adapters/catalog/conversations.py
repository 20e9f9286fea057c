"""Conversations: a subject's own threads of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, select, update

from core.adapters.catalog.cursors import check_limit, from_cursor, to_cursor
from core.adapters.catalog.database import clean
from core.adapters.catalog.tables import (
    answer_documents,
    answer_events,
    answers,
    conversations,
    feedback,
)
from core.domain.conversations import MAX_TITLE_CHARS, Conversation
from core.errors import NotFound
from core.ids import new_conversation_id

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Select

    from core.adapters.catalog.database import AnyRow, Database
    from core.domain.access import Principal
    from core.ports.clock import Clock

DELETED_STATUS = "deleted"


class SqlConversations:
    """Implements `core.ports.catalog.ConversationCatalog`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def create(self, principal: Principal, title: str = "") -> Conversation:
        made = Conversation(
            new_conversation_id(), clean(title, MAX_TITLE_CHARS), self._clock.now(), num_answers=0
        )
        row = {
            "conversation_id": made.conversation_id,
            "tenant_id": principal.tenant_id,
            "subject": principal.subject,
            "title": made.title,
            "created_at": made.created_at,
        }
        self._db.write(lambda tx: tx.execute(conversations.insert().values(**row)))
        return made

    def get(self, principal: Principal, conversation_id: str) -> Conversation:
        return self._db.read(lambda tx: _get(tx, principal, conversation_id))

    def recent(
        self, principal: Principal, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Conversation], str | None]:
        check_limit(limit)
        query = _counted().where(_own(principal))
        if cursor is not None:
            query = query.where(conversations.c.conversation_id < from_cursor(cursor, "conv"))
        query = query.order_by(conversations.c.conversation_id.desc()).limit(limit + 1)

        def work(tx: Connection) -> tuple[list[Conversation], str | None]:
            rows = tx.execute(query).all()
            found = [_conversation(row) for row in rows[:limit]]
            return found, to_cursor(found[-1].conversation_id) if len(rows) > limit else None

        return self._db.read(work)

    def turns(
        self, principal: Principal, conversation_id: str, *, limit: int
    ) -> list[dict[str, Any]]:
        query = (
            select(answers.c.answer)
            .where(
                answers.c.conversation_id == conversation_id,
                answers.c.tenant_id == principal.tenant_id,
            )
            .order_by(answers.c.created_at.desc(), answers.c.answer_id.desc())
            .limit(limit)
        )

        def work(tx: Connection) -> list[dict[str, Any]]:
            _get(tx, principal, conversation_id)
            return [dict(row.answer) for row in reversed(tx.execute(query).all())]

        return self._db.read(work)

    def delete(self, principal: Principal, conversation_id: str) -> None:
        def work(tx: Connection) -> None:
            _get(tx, principal, conversation_id)
            ids = select(answers.c.answer_id).where(answers.c.conversation_id == conversation_id)
            for table in (answer_events, answer_documents, feedback):
                tx.execute(delete(table).where(table.c.answer_id.in_(ids)))
            # The rows stay for what they cost; nothing that was said does.
            tx.execute(
                update(answers)
                .where(answers.c.conversation_id == conversation_id)
                .values(
                    answer={},
                    answer_status=DELETED_STATUS,
                    redacted_at=self._clock.now(),
                    conversation_id=None,
                )
            )
            tx.execute(
                delete(conversations).where(conversations.c.conversation_id == conversation_id)
            )

        self._db.write(work)


def link(tx: Connection, principal: Principal, answer: dict[str, Any]) -> str | None:
    """The conversation that an answer is stored in: None when it names none, or one that is gone.

    The first question becomes the title of a conversation that has none.
    """
    conversation_id = answer.get("conversation_id")
    if not isinstance(conversation_id, str):
        return None
    own = and_(conversations.c.conversation_id == conversation_id, _own(principal))
    if tx.execute(select(conversations.c.title).where(own)).one_or_none() is None:
        return None
    title = clean(" ".join(str(answer.get("question", "")).split()), MAX_TITLE_CHARS)
    tx.execute(update(conversations).where(own, conversations.c.title == "").values(title=title))
    return conversation_id


def _get(tx: Connection, principal: Principal, conversation_id: str) -> Conversation:
    query = _counted().where(_own(principal), conversations.c.conversation_id == conversation_id)
    row = tx.execute(query).one_or_none()
    if row is None:
        raise NotFound("no such conversation", conversation_id=conversation_id)
    return _conversation(row)


def _own(principal: Principal) -> ColumnElement[bool]:
    """A conversation is private: not even an administrator reads another's."""
    return and_(
        conversations.c.tenant_id == principal.tenant_id,
        conversations.c.subject == principal.subject,
    )


def _counted() -> Select[Any]:
    num_answers = (
        select(func.count())
        .select_from(answers)
        .where(answers.c.conversation_id == conversations.c.conversation_id)
        .scalar_subquery()
    )
    return select(conversations, num_answers.label("num_answers"))


def _conversation(row: AnyRow) -> Conversation:
    return Conversation(row.conversation_id, row.title, row.created_at, int(row.num_answers))
