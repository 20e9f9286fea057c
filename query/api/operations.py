"""Liveness, readiness, metrics, the ingest queue and events from buckets."""

from __future__ import annotations

import hmac
import ipaddress
import json
import threading
from collections.abc import Callable
from functools import partial

import anyio.to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import generate_latest

from core.domain.access import Principal, Scope
from core.domain.operations import Heartbeat
from core.errors import BrokerUnavailable, InvalidInput, NotAuthenticated, NotFound, PinciteError
from core.metrics import IngestCollector, new_registry
from core.object_events import ObjectReference, parse_object_events
from query.api.audit import write_audit
from query.api.schemas.operations import BrokerState, Hints, IngestState, ProcessState
from query.http.auth import Ingester, Operator, TheServices, authenticate, has_credentials
from query.http.errors import request_id_of
from query.services import Services

router = APIRouter(tags=["operations"])
HEARTBEAT_MAX_AGE_S = 60.0
_READINESS_S = 1.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Whoever adds one of these is a proxy: the connection's address is not the client's.
_FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@router.get("/livez", include_in_schema=False)
@router.head("/livez", include_in_schema=False)
async def live() -> dict[str, str]:
    """This process answers; asks nobody else, and needs no thread."""
    return {"status": "ok"}


@router.get("/readyz", include_in_schema=False)
@router.head("/readyz", include_in_schema=False)
def ready(request: Request, services: TheServices) -> JSONResponse:
    """Whether what a question needs answers: catalog, index, models and object store."""
    readiness: Readiness = request.app.state.readiness
    problems = readiness.problems(services)
    body = {"status": "unavailable" if problems else "ok", "problems": problems}
    return JSONResponse(body, status_code=503 if problems else 200)


class Readiness:
    """Asks every server, at most once a second however often it is asked itself: the probe is open
    to everybody."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        self._looked_at: float | None = None

    def problems(self, services: Services) -> dict[str, str]:
        """Error codes by what is missing; empty when all is well."""
        with self._lock:
            now = services.clock.monotonic()
            if self._looked_at is None or now - self._looked_at >= _READINESS_S:
                self._found = _look(services)
                self._looked_at = services.clock.monotonic()
            return self._found


def _look(services: Services) -> dict[str, str]:
    checks: dict[str, Callable[[], object]] = {
        "catalog": services.catalog.check,
        "index": services.index.manifest,
        # not `info`, which is remembered from when the models last answered
        "models": lambda: services.embedder.embed_questions(["ready?"]),
        "objects": lambda: services.store.ensure_bucket(services.artifacts.bucket),
    }
    found: dict[str, str] = {}
    for name, check in checks.items():
        try:
            check()
        except PinciteError as error:
            found[name] = error.code
    return found


@router.get("/v1/ops/ingest")
def ingest_state(principal: Operator, services: TheServices) -> IngestState:
    """Queue depth, ages and workers, all from the catalog; the broker's own count beside it."""
    counts = services.catalog.operations.counts(principal.tenant_id)
    beats = services.catalog.operations.heartbeats(max_age_s=HEARTBEAT_MAX_AGE_S)
    try:
        broker = BrokerState.of(services.job_queue.depth())
    except BrokerUnavailable as error:
        broker = BrokerState(problem=error.code)
    return IngestState.of(counts, broker, _processes(services, principal, beats))


def _processes(
    services: Services, principal: Principal, beats: list[Heartbeat]
) -> list[ProcessState]:
    """Processes serve all tenants: which document one works on is only told to its owner."""
    found = []
    with services.catalog.snapshot(principal) as snapshot:
        for beat in beats:
            doing = beat.doing
            if doing is not None:
                try:
                    snapshot.document(doing)
                except NotFound:
                    doing = None
            found.append(ProcessState.of(beat, doing))
    return found


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request, services: TheServices) -> Response:
    """Prometheus text. Open on loopback; elsewhere with PINCITE_API__METRICS_TOKEN, or a key with
    scope ops (which sees its own tenant's numbers)."""
    tenant_id = _metrics_of(request, services)
    operations = services.catalog.operations
    collector = IngestCollector(
        partial(operations.counts, tenant_id),
        partial(operations.heartbeats, max_age_s=HEARTBEAT_MAX_AGE_S),
        lambda: {queue.value: n for queue, n in services.job_queue.depth().ready.items()},
    )
    return Response(generate_latest(new_registry(collector)), media_type=_METRICS_TYPE)


def _metrics_of(request: Request, services: Services) -> str | None:
    """Whose numbers the caller may see, None for all. Raises NotAuthenticated, NotPermitted."""
    if has_credentials(request):
        if _is_metrics_token(request, services):
            return None
        principal = authenticate(request)
        principal.require(Scope.OPS)
        return principal.tenant_id
    if _is_local(request):
        return None
    raise NotAuthenticated("metrics need a token here", hint="PINCITE_API__METRICS_TOKEN")


def _is_metrics_token(request: Request, services: Services) -> bool:
    expected = services.settings.api.metrics_token.get_secret_value()
    offered = request.headers.get("authorization", "").removeprefix("Bearer ")
    return bool(expected) and hmac.compare_digest(expected.encode(), offered.encode())


def _is_local(request: Request) -> bool:
    if request.client is None or any(name in request.headers for name in _FORWARDING):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


@router.post("/v1/internal/object-events", status_code=202)
async def object_events(request: Request, principal: Ingester, services: TheServices) -> Hints:
    """Take a bucket's notification as a hint: the key will be looked at soon."""
    body = await request.body()
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the event is not JSON") from error
    return await anyio.to_thread.run_sync(
        partial(_take_hints, services, principal, request_id_of(request), payload)
    )


def _take_hints(
    services: Services, principal: Principal, request_id: str, payload: object
) -> Hints:
    """Only for buckets of the caller's tenant; what is said of others is passed over."""
    known = [
        event for event in parse_object_events(payload) if _may_announce(services, principal, event)
    ]
    for event in known:
        services.catalog.intake.add_hint(principal.tenant_id, event.bucket, event.key)
    write_audit(services, request_id, principal, "object_events.hint", str(len(known)))
    return Hints(hints=len(known))


def _may_announce(services: Services, principal: Principal, event: ObjectReference) -> bool:
    collection = event.key.partition("/")[0] if "/" in event.key else "default"
    is_theirs = services.tenant_ids.get(event.bucket) == principal.tenant_id
    return is_theirs and principal.may_see(collection)
