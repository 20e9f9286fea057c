"""A person's second thoughts about a job: retry and cancel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, select, update

from core.adapters.catalog.records import job_records, select_jobs
from core.adapters.catalog.status import CANCELLED
from core.adapters.catalog.tables import documents, generations, jobs, outbox, parts
from core.adapters.catalog.work import announce, finish_job, lock_document, touch
from core.domain.documents import PartState, Stage
from core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from core.adapters.catalog.database import AnyRow
    from core.domain.access import Principal
    from core.domain.documents import IngestJob

# How long a claim to purge a failed generation's points keeps a retry away.
PURGE_CLAIM_S = 60.0


def retry(tx: Connection, principal: Principal, job_id: str, now: datetime) -> IngestJob:
    """See `PartCatalog.retry`.

    The index stage is done anew when it had begun: the points of a failed generation may have been
    purged, or be what was wrong. Earlier stages read and write artifacts, which stay.
    """
    row = _locked_job(tx, principal, job_id)
    if row.newest_seq != row.version_seq:
        raise Conflict("a newer version of this document exists", job_id=job_id)
    if row.failed_at is None:
        raise Conflict("nothing of this job has failed", job_id=job_id)
    is_purging = row.purge_claimed_at is not None and row.purged_at is None
    if is_purging and now - row.purge_claimed_at < timedelta(seconds=PURGE_CLAIM_S):
        raise Conflict("what is left of the failed attempt is being deleted", hint="try again soon")
    own = parts.c.generation_id == row.generation_id
    _reset(tx, and_(own, parts.c.state == PartState.FAILED.value))
    num_open, num_terms = row.num_open, row.num_terms
    stage = Stage(row.stage)
    if stage in {Stage.INDEX, Stage.ACTIVATE}:
        stage = Stage.INDEX
        num_open, num_terms = _restart_index(tx, own, num_terms)
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == row.generation_id)
        .values(
            stage=stage.value,
            num_open=num_open,
            num_terms=num_terms,
            failed_at=None,
            purge_claimed_at=None,
            purged_at=None,
        )
    )
    tx.execute(update(jobs).where(jobs.c.job_id == job_id).values(finished_at=None))
    announce(tx, row.generation_id, now)
    touch(tx, row.document_id, now)
    return _job(tx, principal, job_id)


def cancel(tx: Connection, principal: Principal, job_id: str, now: datetime) -> IngestJob:
    """See `PartCatalog.cancel`."""
    row = _locked_job(tx, principal, job_id)
    if row.finished_at is not None:
        raise Conflict("this job is finished already", job_id=job_id)
    unfinished = [PartState.WAITING.value, PartState.LEASED.value]
    tx.execute(
        update(parts)
        .where(parts.c.generation_id == row.generation_id, parts.c.state.in_(unfinished))
        .values(
            state=PartState.FAILED.value,
            failure=CANCELLED,
            owner=None,
            expires_at=None,
            finished_at=now,
        )
    )
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == row.generation_id)
        .values(failed_at=now)
    )
    tx.execute(delete(outbox).where(outbox.c.generation_id == row.generation_id))
    finish_job(tx, jobs.c.job_id == job_id, now)
    touch(tx, row.document_id, now)
    return _job(tx, principal, job_id)


def _locked_job(tx: Connection, principal: Principal, job_id: str) -> AnyRow:
    document_id = tx.execute(
        select(jobs.c.document_id).where(
            jobs.c.job_id == job_id, jobs.c.tenant_id == principal.tenant_id
        )
    ).scalar_one_or_none()
    document = None if document_id is None else lock_document(tx, document_id)
    if (
        document is None
        or document.deleted_at is not None
        or not principal.may_see(document.collection)
    ):
        raise NotFound("no such job", job_id=job_id)
    return tx.execute(
        select(generations, jobs.c.finished_at, documents.c.newest_seq)
        .join(jobs, jobs.c.generation_id == generations.c.generation_id)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .where(jobs.c.job_id == job_id)
    ).one()


def _restart_index(tx: Connection, own: ColumnElement[bool], num_terms: int) -> tuple[int, int]:
    """Reset the index stage; returns its number of parts, and the terms that remain counted."""
    tx.execute(delete(parts).where(own, parts.c.stage == Stage.ACTIVATE.value))
    of_index = and_(own, parts.c.stage == Stage.INDEX.value)
    counted = tx.execute(
        select(
            func.count().label("num"), func.coalesce(func.sum(parts.c.num_terms), 0).label("terms")
        )
        .select_from(parts)
        .where(of_index)
    ).one()
    _reset(tx, and_(of_index, parts.c.state == PartState.DONE.value))
    return counted.num, num_terms - int(counted.terms)


def _reset(tx: Connection, which: ColumnElement[bool]) -> None:
    """Back to waiting without attempts; the new epoch fences whoever still works on it."""
    tx.execute(
        update(parts)
        .where(which)
        .values(
            state=PartState.WAITING.value,
            epoch=parts.c.epoch + 1,
            attempts=0,
            num_terms=0,
            failure=None,
            error_code=None,
            error_message=None,
            error_hint=None,
            not_before=None,
            finished_at=None,
        )
    )


def _job(tx: Connection, principal: Principal, job_id: str) -> IngestJob:
    row = tx.execute(select_jobs(principal).where(jobs.c.job_id == job_id)).one()
    return job_records(tx, [row])[0]
