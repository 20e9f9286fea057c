"""The outbox: how parts that wait become known to the broker, whatever the broker loses."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select, update

from core.adapters.catalog.tables import generations, outbox, parts
from core.adapters.catalog.work import (
    MAX_ANNOUNCED,
    MAX_CLOCK_SKEW_S,
    has_expired,
    is_due,
    is_wanted,
    write_messages,
)
from core.domain.documents import PartState, Queue
from core.domain.operations import OutboxMessage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection
    from sqlalchemy.sql.schema import Column

CLAIM_S = 5.0


def sweep(tx: Connection, now: datetime, *, republish_after_s: float, limit: int) -> int:
    """See `PartCatalog.sweep`. Rows that another sweeper is at are left to it."""
    _free_expired(tx, now, limit)
    return _announce_due(tx, now, limit) + _send_again(tx, now, republish_after_s, limit)


def take_outbox(tx: Connection, now: datetime, *, limit: int) -> list[OutboxMessage]:
    """See `PartCatalog.take_outbox`."""
    rows = tx.execute(
        select(outbox.c.message_id, outbox.c.part_id, outbox.c.queue)
        .where(outbox.c.sent_at.is_(None), _is_past(outbox.c.claimed_at, now, CLAIM_S))
        .order_by(outbox.c.message_id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    ids = [row.message_id for row in rows]
    tx.execute(update(outbox).where(outbox.c.message_id.in_(ids)).values(claimed_at=now))
    return [OutboxMessage(row.message_id, row.part_id, Queue(row.queue)) for row in rows]


def mark_sent(tx: Connection, message_ids: Sequence[int], now: datetime) -> None:
    """Messages whose part was leased meanwhile are gone already."""
    tx.execute(
        update(outbox)
        .where(outbox.c.message_id.in_(list(message_ids)), outbox.c.sent_at.is_(None))
        .values(sent_at=now)
    )


def _free_expired(tx: Connection, now: datetime, limit: int) -> None:
    expired = [
        row.part_id
        for row in tx.execute(
            select(parts.c.part_id)
            .where(has_expired(now))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    ]
    tx.execute(
        update(parts)
        .where(parts.c.part_id.in_(expired), has_expired(now))
        .values(
            state=PartState.WAITING.value,
            owner=None,
            expires_at=None,
            error_code="lease_expired",
            error_message="the worker that had this part stopped reporting",
            error_hint=None,
        )
    )


def _announce_due(tx: Connection, now: datetime, limit: int) -> int:
    """Due parts of wanted generations that have no message, up to each generation's bound."""
    announced = (
        select(outbox.c.generation_id, func.count().label("num"))
        .group_by(outbox.c.generation_id)
        .subquery()
    )
    place = func.row_number().over(
        partition_by=parts.c.generation_id, order_by=(parts.c.first, parts.c.part_id)
    )
    due = (
        select(
            parts.c.part_id,
            parts.c.generation_id,
            parts.c.tenant_id,
            parts.c.queue,
            parts.c.created_at,
            (place + func.coalesce(announced.c.num, 0)).label("place"),
        )
        .join(generations, generations.c.generation_id == parts.c.generation_id)
        .outerjoin(outbox, outbox.c.part_id == parts.c.part_id)
        .outerjoin(announced, announced.c.generation_id == parts.c.generation_id)
        .where(is_due(now), is_wanted(), outbox.c.part_id.is_(None))
        .subquery()
    )
    rows = tx.execute(
        select(due)
        .where(due.c.place <= MAX_ANNOUNCED)
        .order_by(due.c.created_at, due.c.part_id)
        .limit(limit)
    ).all()
    return write_messages(tx, rows, now)


def _send_again(tx: Connection, now: datetime, republish_after_s: float, limit: int) -> int:
    """Messages that were sent and led to no lease: the broker may have lost them."""
    overdue = tx.execute(
        select(outbox.c.message_id, parts.c.state)
        .join(parts, parts.c.part_id == outbox.c.part_id)
        .where(outbox.c.sent_at.is_not(None), _is_past(outbox.c.sent_at, now, republish_after_s))
        .order_by(outbox.c.message_id)
        .limit(limit)
        .with_for_update(of=outbox, skip_locked=True)
    ).all()
    lost = [row.message_id for row in overdue if row.state == PartState.WAITING.value]
    # Announced while a worker was just taking it (PostgreSQL): nobody needs to hear of it again.
    idle = [row.message_id for row in overdue if row.state != PartState.WAITING.value]
    tx.execute(
        update(outbox).where(outbox.c.message_id.in_(lost)).values(sent_at=None, claimed_at=None)
    )
    tx.execute(delete(outbox).where(outbox.c.message_id.in_(idle)))
    return len(lost)


def _is_past(column: Column[datetime], now: datetime, seconds: float) -> ColumnElement[bool]:
    """Never, at least `seconds` ago, or in a future that the clock left again."""
    return or_(
        column.is_(None),
        column <= now - timedelta(seconds=seconds),
        column > now + timedelta(seconds=MAX_CLOCK_SKEW_S),
    )
