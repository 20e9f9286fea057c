"""Rows into the records that people see: documents and jobs with their derived status."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, false, func, or_, select

from core.adapters.catalog.status import (
    CANCELLED,
    SUPERSEDED,
    facts_key,
    facts_of,
    status_of,
)
from core.adapters.catalog.tables import documents, generations, jobs, parts, versions
from core.domain.documents import (
    DocumentProblem,
    DocumentRecord,
    DocumentStatus,
    IngestJob,
    PartState,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from core.adapters.catalog.database import AnyRow
    from core.domain.access import Principal

active = generations.alias("active_generation")

_PROBLEM_OF_STATUS = {
    DocumentStatus.NEEDS_PASSWORD: "the file needs a password",
    DocumentStatus.CORRUPT: "the file cannot be read",
    DocumentStatus.UNSUPPORTED: "this kind of file is not supported",
    DocumentStatus.NEEDS_OCR: "the pages are pictures without text",
    DocumentStatus.TOO_LARGE: "the file is larger than the limits allow",
    DocumentStatus.QUARANTINED: "the file could not be ingested",
}


def visible(principal: Principal) -> ColumnElement[bool]:
    """Documents of the Principal's tenant and collections."""
    own = documents.c.tenant_id == principal.tenant_id
    if principal.collections is None:
        return own
    if not principal.collections:
        return false()
    return and_(own, documents.c.collection.in_(sorted(principal.collections)))


@cache
def is_unpurged() -> ColumnElement[bool]:
    """Documents that are not deleted, or whose points are not all gone yet."""
    left = generations.alias("left_over")
    return or_(
        documents.c.deleted_at.is_(None),
        exists().where(left.c.document_id == documents.c.document_id, left.c.purged_at.is_(None)),
    )


# ------------------------------------------------------------------------- documents


def select_documents(principal: Principal) -> Select[Any]:
    """The newest version of each visible, living document; order and limits are the caller's."""
    return _document_rows().where(visible(principal), documents.c.deleted_at.is_(None))


@cache
def _document_rows() -> Select[Any]:
    return (
        select(
            documents.c.document_id,
            documents.c.collection,
            documents.c.bucket,
            documents.c.key,
            documents.c.created_at,
            documents.c.updated_at,
            versions.c.version_seq,
            versions.c.sha256,
            versions.c.size_bytes,
            versions.c.content_type,
            versions.c.generation_id,
            generations.c.title,
            generations.c.pages_done,
            generations.c.page_count,
            generations.c.num_chunks,
            generations.c.warnings,
            generations.c.failed_pages,
            active.c.version_seq.label("active_version_seq"),
            jobs.c.job_id,
            facts_key().label("facts"),
        )
        .select_from(documents)
        .join(
            versions,
            and_(
                versions.c.document_id == documents.c.document_id,
                versions.c.version_seq == documents.c.newest_seq,
            ),
        )
        .join(generations, generations.c.generation_id == documents.c.shown_generation_id)
        .join(jobs, jobs.c.generation_id == versions.c.generation_id)
        .outerjoin(active, active.c.generation_id == documents.c.active_generation_id)
    )


def document_records(tx: Connection, rows: Sequence[AnyRow]) -> list[DocumentRecord]:
    """Rows of `select_documents` with what their parts say."""
    generation_ids = [row.generation_id for row in rows]
    attempts = _attempts(tx, generation_ids)
    failed = _failed_parts(tx, generation_ids)
    return [
        DocumentRecord(
            document_id=row.document_id,
            collection=row.collection,
            bucket=row.bucket,
            key=row.key,
            title=row.title,
            status=status_of(row.facts),
            version_seq=row.version_seq,
            sha256=row.sha256,
            size_bytes=row.size_bytes,
            content_type=row.content_type,
            active_version_seq=row.active_version_seq,
            pages_done=row.pages_done,
            pages_total=row.page_count,
            num_chunks=row.num_chunks,
            attempts=attempts.get(row.generation_id, 0),
            problem=_problem(row.facts, failed.get(row.generation_id)),
            created_at=row.created_at,
            updated_at=row.updated_at,
            job_id=row.job_id,
            warnings=tuple(row.warnings),
            failed_pages=tuple(row.failed_pages),
        )
        for row in rows
    ]


# ------------------------------------------------------------------------------- jobs


def select_jobs(principal: Principal) -> Select[Any]:
    """Visible jobs; those of a deleted document until its points are gone."""
    return _job_rows().where(visible(principal), is_unpurged())


@cache
def _job_rows() -> Select[Any]:
    return (
        select(
            jobs.c.job_id,
            jobs.c.document_id,
            jobs.c.version_seq,
            jobs.c.generation_id,
            jobs.c.created_at,
            jobs.c.finished_at,
            facts_key().label("facts"),
        )
        .select_from(jobs)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .join(
            versions,
            and_(
                versions.c.document_id == jobs.c.document_id,
                versions.c.version_seq == jobs.c.version_seq,
            ),
        )
        .join(
            generations,
            generations.c.generation_id
            == func.coalesce(versions.c.closed_as, versions.c.generation_id),
        )
    )


def job_records(tx: Connection, rows: Sequence[AnyRow]) -> list[IngestJob]:
    """Rows of `select_jobs` with their parts by stage and state."""
    generation_ids = [row.generation_id for row in rows]
    stages = _stages(tx, generation_ids)
    failed = _failed_parts(tx, generation_ids)
    return [
        IngestJob(
            job_id=row.job_id,
            document_id=row.document_id,
            version_seq=row.version_seq,
            status=status_of(row.facts),
            created_at=row.created_at,
            finished_at=row.finished_at,
            stages=stages.get(row.generation_id, {}),
            problem=_problem(row.facts, failed.get(row.generation_id)),
        )
        for row in rows
    ]


def _stages(tx: Connection, generation_ids: Sequence[str]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    rows = tx.execute(
        select(parts.c.generation_id, parts.c.stage, parts.c.state, func.count().label("num"))
        .where(parts.c.generation_id.in_(generation_ids))
        .group_by(parts.c.generation_id, parts.c.stage, parts.c.state)
        .order_by(parts.c.stage, parts.c.state)
    )
    for row in rows:
        found.setdefault(row.generation_id, {}).setdefault(row.stage, {})[row.state] = row.num
    return found


# ----------------------------------------------------------------------------- problems


def _attempts(tx: Connection, generation_ids: Sequence[str]) -> dict[str, int]:
    rows = tx.execute(
        select(parts.c.generation_id, func.max(parts.c.attempts).label("num"))
        .where(parts.c.generation_id.in_(generation_ids))
        .group_by(parts.c.generation_id)
    )
    return {row.generation_id: row.num for row in rows}


def _failed_parts(tx: Connection, generation_ids: Sequence[str]) -> dict[str, AnyRow]:
    """For each generation the failed part that decides its status (see `facts_key`)."""
    rows = tx.execute(
        select(
            parts.c.generation_id,
            parts.c.failure,
            parts.c.error_code,
            parts.c.error_message,
            parts.c.error_hint,
        )
        .where(parts.c.generation_id.in_(generation_ids), parts.c.state == PartState.FAILED.value)
        .order_by(parts.c.failure, parts.c.first)
    )
    found: dict[str, AnyRow] = {}
    for row in rows:
        found.setdefault(row.generation_id, row)
    return found


def _problem(facts: str, failed: AnyRow | None) -> DocumentProblem | None:
    status, failure = status_of(facts), facts_of(facts).failure
    if status is DocumentStatus.DELETING or failure is None:
        return None
    if failure == CANCELLED:
        return DocumentProblem(CANCELLED, "the ingest was cancelled", "retry the job to resume it")
    if failure == SUPERSEDED:
        return DocumentProblem(SUPERSEDED, "a newer version of the file replaced this one")
    if failed is None:
        return DocumentProblem(failure, _PROBLEM_OF_STATUS[status])
    return DocumentProblem(
        failed.error_code or failure,
        failed.error_message or _PROBLEM_OF_STATUS[status],
        failed.error_hint,
    )
