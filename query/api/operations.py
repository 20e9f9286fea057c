"""Liveness, readiness, metrics, the ingest queue and events from buckets."""

from __future__ import annotations

import hmac
import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from core.errors import InvalidInput, NotAuthenticated, PinciteError
from core.object_events import parse_object_events
from query.api.ingest_metrics import render_metrics
from query.api.shapes import counts_json
from query.http.auth import Ingester, Operator, TheServices, authenticate
from query.services import Services

router = APIRouter(tags=["operations"])
_HEARTBEAT_MAX_AGE_S = 60.0
_MAX_EVENT_BYTES = 1_000_000


@router.get("/livez", include_in_schema=False)
def live() -> dict[str, str]:
    """This process answers; asks nobody else."""
    return {"status": "ok"}


@router.get("/readyz", include_in_schema=False)
def ready(services: TheServices) -> JSONResponse:
    """Whether what a question needs answers: catalog, index, models and object store."""
    problems = {name: problem for name, problem in _check(services).items() if problem}
    body = {"status": "unavailable" if problems else "ok", "problems": problems}
    return JSONResponse(body, status_code=503 if problems else 200)


def _check(services: Services) -> dict[str, str | None]:
    answering = services.answering
    artifacts_bucket = services.settings.objects.artifacts_bucket
    checks = {
        "catalog": services.catalog.check,
        "index": answering.index.manifest,
        "models": answering.embedder.info,
        "objects": lambda: services.store.ensure_bucket(artifacts_bucket),
    }
    found: dict[str, str | None] = {}
    for name, check in checks.items():
        try:
            check()
            found[name] = None
        except PinciteError as error:
            found[name] = error.code
    return found


@router.get("/v1/ops/ingest")
def ingest_state(principal: Operator, services: TheServices) -> dict[str, Any]:
    """Queue depth, ages and workers, all from the catalog; the broker's own count beside it."""
    counts = services.catalog.operations.counts(principal.tenant_id)
    beats = services.catalog.operations.heartbeats(max_age_s=_HEARTBEAT_MAX_AGE_S)
    try:
        depth = services.job_queue.depth()
        broker: dict[str, Any] = {
            "ready": {queue.value: count for queue, count in depth.ready.items()},
            "unacked": depth.unacked,
        }
    except PinciteError as error:
        broker = {"problem": error.code}
    return counts_json(counts) | {
        "broker": broker,
        "processes": [
            {
                "process": beat.process,
                "role": beat.role,
                "pid": beat.pid,
                "host": beat.host,
                "seen_at": beat.seen_at.isoformat(),
                "doing": beat.doing,
                "rss_bytes": beat.rss_bytes,
            }
            for beat in beats
        ],
    }


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request, services: TheServices) -> Response:
    """Prometheus text. Open on loopback; elsewhere with PINCITE_API__METRICS_TOKEN or scope ops."""
    _require_metrics_access(request, services)
    return Response(
        render_metrics(services.catalog.operations.counts(None)),
        media_type="text/plain; version=0.0.4; charset=utf-8",
    )


def _require_metrics_access(request: Request, services: Services) -> None:
    host = request.client.host if request.client else ""
    if host in ("127.0.0.1", "::1"):
        return
    expected = services.settings.api.metrics_token.get_secret_value()
    offered = request.headers.get("authorization", "").removeprefix("Bearer ")
    if expected and hmac.compare_digest(expected.encode(), offered.encode()):
        return
    if not offered:
        raise NotAuthenticated("metrics need a token here", hint="PINCITE_API__METRICS_TOKEN")
    authenticate(request)


@router.post("/v1/internal/object-events", status_code=202)
async def object_events(
    request: Request, principal: Ingester, services: TheServices
) -> dict[str, int]:
    """Take a bucket's notification as a hint: the key will be looked at soon."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_EVENT_BYTES:
            raise InvalidInput("the event is too large")
    try:
        events = parse_object_events(json.loads(bytes(body)))
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInput("the event is not JSON") from error
    known = [event for event in events if event.bucket in services.settings.objects.buckets]
    for event in known:
        services.catalog.intake.add_hint(principal.tenant_id, event.bucket, event.key)
    return {"hints": len(known)}
