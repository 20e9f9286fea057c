"""What may be deleted for good: points of dead generations, artifacts of dead contents."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, func, or_, select, update

from core.adapters.catalog.tables import contents, documents, generations, outbox, parts, versions
from core.domain.operations import DeadContent, DeadGeneration

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from core.adapters.catalog.database import AnyRow

# After this a purge that was begun and not finished is handed out again.
PURGE_TIMEOUT_S = 600.0


def dead_generations(
    tx: Connection, now: datetime, *, older_than_s: float, limit: int
) -> list[DeadGeneration]:
    """See `OperationsCatalog.dead_generations`. A failed generation is claimed, so that a retry
    does not index into a purge that is under way."""
    cutoff = now - timedelta(seconds=older_than_s)
    rows = tx.execute(
        select(generations)
        .where(
            generations.c.purged_at.is_(None),
            or_(generations.c.superseded_at <= cutoff, generations.c.failed_at <= cutoff),
        )
        .order_by(generations.c.generation_id)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    ).all()
    failed = [row.generation_id for row in rows if row.superseded_at is None]
    tx.execute(
        update(generations)
        .where(generations.c.generation_id.in_(failed))
        .values(purge_claimed_at=now)
    )
    return [DeadGeneration(row.tenant_id, row.document_id, row.generation_id) for row in rows]


def mark_purged(tx: Connection, generation_id: str, now: datetime) -> None:
    """The points are gone; so are the parts, unless a retry may still need them."""
    dead = and_(
        generations.c.generation_id == generation_id,
        or_(generations.c.superseded_at.is_not(None), generations.c.failed_at.is_not(None)),
    )
    purged = tx.execute(
        update(generations)
        .where(dead, generations.c.purged_at.is_(None))
        .values(purged_at=now)
        .returning(generations.c.superseded_at)
    ).one_or_none()
    if purged is not None and purged.superseded_at is not None:
        for table in (outbox, parts):
            tx.execute(delete(table).where(table.c.generation_id == generation_id))


def is_live_generation(tx: Connection, document_id: str, generation_id: str) -> bool:
    """See `OperationsCatalog.is_live_generation`."""
    live = exists().where(
        generations.c.generation_id == generation_id,
        generations.c.document_id == document_id,
        generations.c.superseded_at.is_(None),
        generations.c.purged_at.is_(None),
    )
    return bool(tx.execute(select(live)).scalar_one())


def take_dead_content(
    tx: Connection, now: datetime, *, retention_s: float, limit: int
) -> list[DeadContent]:
    """See `OperationsCatalog.take_dead_content`.

    The rows are locked first and judged again afterwards: on PostgreSQL a version that named the
    content between the two would not be in the first statement's view.
    """
    is_free = or_(
        contents.c.purging_since.is_(None),
        contents.c.purging_since <= now - timedelta(seconds=PURGE_TIMEOUT_S),
    )
    is_needed = exists().where(
        versions.c.tenant_id == contents.c.tenant_id,
        versions.c.sha256 == contents.c.sha256,
        _is_kept(now - timedelta(seconds=retention_s)),
    )
    rows = tx.execute(
        select(contents.c.tenant_id, contents.c.sha256)
        .where(is_free, ~is_needed)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    ).all()
    dead = []
    for row in rows:
        taken = tx.execute(
            update(contents).where(_content(row), ~is_needed).values(purging_since=now)
        )
        if taken.rowcount == 1:
            dead.append(DeadContent(row.tenant_id, row.sha256))
    return dead


def finish_dead_content(tx: Connection, content: DeadContent, now: datetime) -> None:
    """The artifacts are gone: older versions with these bytes answer Gone from now on."""
    removed = tx.execute(
        delete(contents).where(_content(content), contents.c.purging_since.is_not(None))
    )
    if removed.rowcount != 1:
        return
    tx.execute(
        update(versions)
        .where(
            versions.c.tenant_id == content.tenant_id,
            versions.c.sha256 == content.sha256,
            or_(versions.c.superseded_at.is_not(None), versions.c.deleted_at.is_not(None)),
        )
        .values(bytes_gone_at=now)
    )


def average_terms(tx: Connection) -> float | None:
    """See `OperationsCatalog.average_terms`."""
    sums = tx.execute(
        select(
            func.sum(generations.c.num_terms).label("terms"),
            func.sum(generations.c.num_chunks).label("chunks"),
        )
        .join(documents, documents.c.active_generation_id == generations.c.generation_id)
        .where(generations.c.num_terms > 0)
    ).one()
    return float(sums.terms) / float(sums.chunks) if sums.chunks else None


def _is_kept(cutoff: datetime) -> ColumnElement[bool]:
    return and_(
        versions.c.deleted_at.is_(None),
        or_(versions.c.superseded_at.is_(None), versions.c.superseded_at > cutoff),
    )


def _content(content: DeadContent | AnyRow) -> ColumnElement[bool]:
    return and_(contents.c.tenant_id == content.tenant_id, contents.c.sha256 == content.sha256)
