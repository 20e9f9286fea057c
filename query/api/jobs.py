"""/v1/jobs: runs of the pipeline, with retry and cancel."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from query.api.audit import write_audit
from query.api.shapes import job_json, page_of
from query.http.auth import Ingester, Searcher, TheServices

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("")
def list_jobs(
    principal: Searcher,
    services: TheServices,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    with services.catalog.snapshot(principal) as snapshot:
        jobs, next_cursor = snapshot.jobs(cursor=cursor, limit=limit)
    return page_of([job_json(job) for job in jobs], next_cursor)


@router.get("/{job_id}")
def show_job(job_id: str, principal: Searcher, services: TheServices) -> dict[str, Any]:
    with services.catalog.snapshot(principal) as snapshot:
        return job_json(snapshot.job(job_id))


@router.post("/{job_id}/retry")
def retry_job(
    job_id: str, request: Request, principal: Ingester, services: TheServices
) -> dict[str, Any]:
    """Give the failed parts new attempts."""
    job = services.catalog.parts.retry(principal, job_id)
    write_audit(services, request, principal, "job.retry", job_id)
    return job_json(job)


@router.post("/{job_id}/cancel")
def cancel_job(
    job_id: str, request: Request, principal: Ingester, services: TheServices
) -> dict[str, Any]:
    job = services.catalog.parts.cancel(principal, job_id)
    write_audit(services, request, principal, "job.cancel", job_id)
    return job_json(job)
