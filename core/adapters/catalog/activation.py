"""The two decisions about a version's content: is it new, and may it be shown now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from core.adapters.catalog.database import insert_new
from core.adapters.catalog.tables import contents, documents, generations, jobs, versions
from core.adapters.catalog.work import (
    close_generations,
    finish_job,
    finish_part,
    held_part,
    is_held,
    lease_lost,
    lock_part,
)
from core.errors import Conflict, InternalError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from core.domain.documents import LeasedPart


def set_content(
    tx: Connection, part: LeasedPart, *, sha256: str, etag: str, now: datetime
) -> str | None:
    """See `PartCatalog.set_content`. Raises LeaseLost, Conflict."""
    row = held_part(tx, part)
    _claim_content(tx, part, sha256, now)
    # A newer etag of the same bytes may have been recorded since the lease: it stays.
    seen = {"sha256": sha256, **({"etag": etag} if row.etag == part.etag else {})}
    tx.execute(update(versions).where(_version(part)).values(**seen))
    active = tx.execute(
        select(generations.c.generation_id, generations.c.version_seq)
        .join(
            versions,
            and_(
                versions.c.document_id == generations.c.document_id,
                versions.c.version_seq == generations.c.version_seq,
            ),
        )
        .where(
            generations.c.generation_id == row.active_generation_id,
            generations.c.generation_id != part.generation_id,
            generations.c.pipeline_fingerprint == part.pipeline_fingerprint,
            versions.c.sha256 == sha256,
        )
    ).one_or_none()
    if active is None:
        return None
    _close_as(tx, part, active.generation_id, now)
    # The object in the bucket goes by the new etag now; its bytes are the active version's.
    tx.execute(
        update(versions)
        .where(
            versions.c.document_id == part.document_id,
            versions.c.version_seq == active.version_seq,
        )
        .values(etag=seen.get("etag", row.etag))
    )
    return str(active.generation_id)


def activate(tx: Connection, part: LeasedPart, *, num_points: int, now: datetime) -> bool:
    """See `PartCatalog.activate`. Raises LeaseLost, InternalError."""
    row = lock_part(tx, part.part_id)
    if row is None:
        raise lease_lost(part)
    if row.deleted_at is not None or row.superseded_at is not None:
        return False
    if not is_held(row, part):
        raise lease_lost(part)
    active_seq = tx.execute(
        select(generations.c.version_seq).where(
            generations.c.generation_id == row.active_generation_id
        )
    ).scalar_one_or_none()
    if active_seq is not None and active_seq >= row.version_seq:
        close_generations(tx, generations.c.generation_id == row.generation_id, now)
        return False
    if not row.num_chunks or num_points != row.num_chunks:
        raise InternalError(
            f"the index holds {num_points} points, not the {row.num_chunks or 0} of the document",
            document_id=part.document_id,
            generation_id=part.generation_id,
        )
    finish_part(tx, part, num_terms=0, now=now)
    _flip(tx, part, now)
    return True


def _flip(tx: Connection, part: LeasedPart, now: datetime) -> None:
    tx.execute(
        update(documents)
        .where(documents.c.document_id == part.document_id)
        .values(active_generation_id=part.generation_id, updated_at=now)
    )
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == part.generation_id)
        .values(activated_at=now, num_open=0, failed_at=None)
    )
    close_generations(
        tx,
        and_(
            generations.c.document_id == part.document_id,
            generations.c.version_seq < part.version_seq,
        ),
        now,
    )
    tx.execute(
        update(versions)
        .where(
            versions.c.document_id == part.document_id,
            versions.c.version_seq < part.version_seq,
            versions.c.superseded_at.is_(None),
        )
        .values(superseded_at=now)
    )
    finish_job(tx, jobs.c.generation_id == part.generation_id, now)


def _close_as(tx: Connection, part: LeasedPart, active_generation_id: str, now: datetime) -> None:
    """End a version whose bytes are what is already active."""
    finish_part(tx, part, num_terms=0, now=now)
    tx.execute(update(versions).where(_version(part)).values(closed_as=active_generation_id))
    close_generations(tx, generations.c.generation_id == part.generation_id, now)
    tx.execute(
        update(documents)
        .where(documents.c.document_id == part.document_id)
        .values(shown_generation_id=active_generation_id, updated_at=now)
    )


def _claim_content(tx: Connection, part: LeasedPart, sha256: str, now: datetime) -> None:
    """Say that artifacts of these bytes are about to exist, unless they are being deleted.

    The row is locked until the version names the content, so that whoever looks for dead content
    sees either the lock or the version.
    """
    where = and_(contents.c.tenant_id == part.tenant_id, contents.c.sha256 == sha256)
    insert_new(tx, contents, [{"tenant_id": part.tenant_id, "sha256": sha256, "created_at": now}])
    is_purging = tx.execute(
        select(contents.c.purging_since).where(where).with_for_update(key_share=True)
    ).scalar_one_or_none()
    if is_purging is not None:
        raise Conflict(
            "an earlier copy of this content is being deleted", document_id=part.document_id
        )


def _version(part: LeasedPart) -> ColumnElement[bool]:
    return and_(
        versions.c.document_id == part.document_id, versions.c.version_seq == part.version_seq
    )
