"""Rows of the work on one document, found under its lock.

Whoever changes a document, its versions, generations or parts locks the document's row first (on
SQLite the whole database is theirs anyway), so that two writers of one document never interleave
and locks are always taken in the same order.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, or_, select, update

from core.adapters.catalog.database import insert_new
from core.adapters.catalog.tables import documents, generations, jobs, outbox, parts, versions
from core.domain.documents import LeasedPart, PartState, Queue, Stage
from core.errors import LeaseLost
from core.ids import new_part_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection

    from core.adapters.catalog.database import AnyRow
    from core.domain.documents import NewPart

# A time that lies further ahead than this was written before the clock went back.
MAX_CLOCK_SKEW_S = 60.0
MAX_DELAY_S = 900.0
# Parts of one generation that are announced and not leased yet (reliability.md, pitfall 12).
MAX_ANNOUNCED = 64


def lock_document(tx: Connection, document_id: str) -> AnyRow | None:
    """The document's row, locked until the transaction ends."""
    found = select(documents).where(documents.c.document_id == document_id)
    return tx.execute(found.with_for_update(key_share=True)).one_or_none()


def lock_part(tx: Connection, part_id: str) -> AnyRow | None:
    """A part with all that its lease tells the worker; its document is locked."""
    document_id = tx.execute(
        select(parts.c.document_id).where(parts.c.part_id == part_id)
    ).scalar_one_or_none()
    if document_id is None or lock_document(tx, document_id) is None:
        return None
    found = (
        select(
            parts,
            jobs.c.job_id,
            documents.c.bucket,
            documents.c.key,
            documents.c.collection,
            documents.c.deleted_at,
            documents.c.active_generation_id,
            versions.c.version_seq,
            versions.c.etag,
            versions.c.size_bytes,
            versions.c.sha256,
            generations.c.title,
            generations.c.page_count,
            generations.c.pipeline_fingerprint,
            generations.c.num_chunks,
            generations.c.superseded_at,
            generations.c.failed_at,
        )
        .join(generations, generations.c.generation_id == parts.c.generation_id)
        .join(jobs, jobs.c.generation_id == parts.c.generation_id)
        .join(documents, documents.c.document_id == parts.c.document_id)
        .join(
            versions,
            and_(
                versions.c.document_id == generations.c.document_id,
                versions.c.version_seq == generations.c.version_seq,
            ),
        )
        .where(parts.c.part_id == part_id)
    )
    return tx.execute(found).one_or_none()


def held_part(tx: Connection, part: LeasedPart) -> AnyRow:
    """The locked part, if the lease is still good. Raises LeaseLost."""
    row = lock_part(tx, part.part_id)
    if row is None or not is_held(row, part) or row.superseded_at is not None:
        raise lease_lost(part)
    return row


def is_held(row: AnyRow, part: LeasedPart) -> bool:
    return bool(row.state == PartState.LEASED.value and row.epoch == part.epoch)


def lease_lost(part: LeasedPart) -> LeaseLost:
    return LeaseLost(
        "somebody else owns this part now, or its document is gone",
        part_id=part.part_id,
        document_id=part.document_id,
    )


def as_lease(row: AnyRow, *, epoch: int, attempt: int, expires_at: datetime) -> LeasedPart:
    """A locked part as the port shows it."""
    return LeasedPart(
        part_id=row.part_id,
        epoch=epoch,
        expires_at=expires_at,
        attempt=attempt,
        stage=Stage(row.stage),
        first=row.first,
        last=row.last,
        tenant_id=row.tenant_id,
        document_id=row.document_id,
        version_seq=row.version_seq,
        generation_id=row.generation_id,
        job_id=row.job_id,
        queue=Queue(row.queue),
        bucket=row.bucket,
        key=row.key,
        etag=row.etag,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        collection=row.collection,
        title=row.title,
        page_count=row.page_count,
        pipeline_fingerprint=row.pipeline_fingerprint,
    )


# ------------------------------------------------------------------------------- times


def has_expired(now: datetime) -> ColumnElement[bool]:
    """Leased parts nobody works on: past the expiry, or leased in a future that the clock left."""
    return and_(
        parts.c.state == PartState.LEASED.value,
        or_(
            parts.c.expires_at <= now,
            parts.c.leased_at > now + timedelta(seconds=MAX_CLOCK_SKEW_S),
        ),
    )


def is_due(now: datetime) -> ColumnElement[bool]:
    """Waiting parts that may be leased now."""
    return and_(
        parts.c.state == PartState.WAITING.value,
        or_(
            parts.c.not_before.is_(None),
            parts.c.not_before <= now,
            parts.c.not_before > now + timedelta(seconds=MAX_DELAY_S + MAX_CLOCK_SKEW_S),
        ),
    )


def is_wanted() -> ColumnElement[bool]:
    """Generations whose parts are worth working on."""
    return and_(generations.c.superseded_at.is_(None), generations.c.failed_at.is_(None))


# ----------------------------------------------------------------------- parts and outbox


def add_parts(
    tx: Connection, generation_id: str, new: Sequence[NewPart], *, queue: str, now: datetime
) -> int:
    """Insert waiting parts; those that exist already are left alone. Returns how many are new."""
    generation = tx.execute(
        select(generations.c.tenant_id, generations.c.document_id).where(
            generations.c.generation_id == generation_id
        )
    ).one()
    return insert_new(
        tx,
        parts,
        [
            {
                "part_id": new_part_id(),
                "tenant_id": generation.tenant_id,
                "document_id": generation.document_id,
                "generation_id": generation_id,
                "stage": part.stage.value,
                "first": part.first,
                "last": part.last,
                "queue": queue,
                "state": PartState.WAITING.value,
                "epoch": 0,
                "attempts": 0,
                "num_terms": 0,
                "created_at": now,
            }
            for part in new
        ],
    )


def announce(tx: Connection, generation_id: str, now: datetime) -> int:
    """Write outbox rows for due parts of a generation, within the bound; returns how many."""
    announced = tx.execute(
        select(outbox.c.part_id).where(outbox.c.generation_id == generation_id)
    ).all()
    room = MAX_ANNOUNCED - len(announced)
    if room <= 0:
        return 0
    due = tx.execute(
        select(parts.c.part_id, parts.c.generation_id, parts.c.tenant_id, parts.c.queue)
        .outerjoin(outbox, outbox.c.part_id == parts.c.part_id)
        .where(parts.c.generation_id == generation_id, is_due(now), outbox.c.part_id.is_(None))
        .order_by(parts.c.first)
        .limit(room)
    ).all()
    return write_messages(tx, due, now)


def write_messages(tx: Connection, due: Sequence[AnyRow], now: datetime) -> int:
    """One outbox row for each part that has none; returns how many were written."""
    rows = [
        {
            "tenant_id": part.tenant_id,
            "part_id": part.part_id,
            "generation_id": part.generation_id,
            "queue": part.queue,
            "created_at": now,
        }
        for part in due
    ]
    return insert_new(tx, outbox, rows)


def finish_part(tx: Connection, part: LeasedPart, *, num_terms: int, now: datetime) -> None:
    """Mark a held part done."""
    tx.execute(
        update(parts)
        .where(parts.c.part_id == part.part_id)
        .values(
            state=PartState.DONE.value,
            owner=None,
            expires_at=None,
            finished_at=now,
            num_terms=num_terms,
        )
    )
    tx.execute(delete(outbox).where(outbox.c.part_id == part.part_id))


def close_generations(tx: Connection, which: ColumnElement[bool], now: datetime) -> None:
    """Nothing will show these generations again: stop their work and let their points be purged."""
    ids = [
        row.generation_id
        for row in tx.execute(
            select(generations.c.generation_id).where(generations.c.superseded_at.is_(None), which)
        )
    ]
    tx.execute(
        update(generations).where(generations.c.generation_id.in_(ids)).values(superseded_at=now)
    )
    tx.execute(delete(outbox).where(outbox.c.generation_id.in_(ids)))
    finish_job(tx, jobs.c.generation_id.in_(ids), now)


def finish_job(tx: Connection, which: ColumnElement[bool], now: datetime) -> None:
    """Stamp jobs that are not finished yet."""
    tx.execute(update(jobs).where(which, jobs.c.finished_at.is_(None)).values(finished_at=now))


def touch(tx: Connection, document_id: str, now: datetime) -> None:
    tx.execute(
        update(documents).where(documents.c.document_id == document_id).values(updated_at=now)
    )
