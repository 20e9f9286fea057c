"""/v1/jobs: runs of the pipeline, with retry and cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from query.api.audit import write_audit
from query.api.schemas.base import Listing
from query.api.schemas.documents import Job
from query.http.auth import Ingester, Searcher, TheServices
from query.http.errors import request_id_of

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("")
def list_jobs(
    principal: Searcher,
    services: TheServices,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Listing[Job]:
    """Jobs, newest first."""
    with services.catalog.snapshot(principal) as snapshot:
        jobs, next_cursor = snapshot.jobs(cursor=cursor, limit=limit)
    return Listing(data=[Job.of(job) for job in jobs], next_cursor=next_cursor)


@router.get("/{job_id}")
def show_job(job_id: str, principal: Searcher, services: TheServices) -> Job:
    with services.catalog.snapshot(principal) as snapshot:
        return Job.of(snapshot.job(job_id))


@router.post("/{job_id}/retry")
def retry_job(job_id: str, request: Request, principal: Ingester, services: TheServices) -> Job:
    """Give the failed parts new attempts."""
    job = services.catalog.parts.retry(principal, job_id)
    write_audit(services, request_id_of(request), principal, "job.retry", job_id)
    return Job.of(job)


@router.post("/{job_id}/cancel")
def cancel_job(job_id: str, request: Request, principal: Ingester, services: TheServices) -> Job:
    """Stop the work on this version."""
    job = services.catalog.parts.cancel(principal, job_id)
    write_audit(services, request_id_of(request), principal, "job.cancel", job_id)
    return Job.of(job)
