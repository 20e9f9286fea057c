"""The FastAPI application: the endpoint table, health, version, metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from core.errors import InternalError, PinciteError, TimedOut
from core.logging import get_logger
from pincite.servers.index.access import Access, AccessGate
from pincite.servers.index.call import Call
from pincite.servers.index.endpoints import ENDPOINTS, Endpoint
from pincite.servers.index.errors import BadRequest, UnknownEndpoint, http_status
from pincite.servers.index.metrics import IndexMetrics
from pincite.servers.index.requests import (
    Parameters,
    answer,
    parse_body,
    read_body,
    read_parameters,
    refusal,
)
from pincite.servers.index.store import IndexStore

# The Qdrant version whose REST interface this is a subset of: clients compare it with their own.
QDRANT_VERSION: Final = "1.20.0"
# The edge library holds the GIL while it works, so more threads would only queue inside Python.
NUM_THREADS: Final = 4

_log = get_logger(__name__)


def create_app(data_dir: Path, api_key: str | None) -> FastAPI:
    """The index server over `data_dir`, for loopback use.

    Args:
        data_dir: opened when the application starts, closed when it stops.
        api_key: the key that clients must send, None = none.

    Starting raises IndexOwned or BrokenRegistry (see `IndexStore.open`).
    """
    return build_app(lambda: IndexStore.open(data_dir), Access(api_key))


def build_app(open_store: Callable[[], IndexStore], access: Access) -> FastAPI:
    """The same with an explicit way to get the store, and explicit access rules."""
    metrics = IndexMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = open_store()
        metrics.watch(store)
        app.state.store = store
        app.state.threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="index")
        try:
            yield
        finally:
            app.state.threads.shutdown()
            store.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(AccessGate, access=access)
    app.add_exception_handler(HTTPException, _unknown_endpoint)
    for endpoint in ENDPOINTS:
        app.add_api_route(
            endpoint.path,
            _handler(endpoint, metrics),
            methods=[endpoint.method],
            name=endpoint.perform.__name__,
        )
    _add_service_routes(app, metrics)
    return app


async def _unknown_endpoint(request: Request, error: Exception) -> Response:
    method_not_allowed = isinstance(error, HTTPException) and error.status_code == 405
    what = "method" if method_not_allowed else "endpoint"
    return refusal(
        UnknownEndpoint(
            f"Not found: {what} {request.method} {request.url.path} is not part of this server's "
            "subset of the Qdrant REST interface",
            hint="docs/api/index-subset.md lists the endpoints",
        ),
        time.perf_counter(),
    )


def _handler(endpoint: Endpoint, metrics: IndexMetrics) -> Callable[[Request], Awaitable[Response]]:
    adapter: TypeAdapter[Any] | None = None if endpoint.body is None else TypeAdapter(endpoint.body)
    operation = endpoint.perform.__name__
    kind = "update" if endpoint.writes else "read"

    async def handle(request: Request) -> Response:
        started = time.perf_counter()
        try:
            content = await read_body(request)
            parameters = read_parameters(request.query_params.multi_items(), endpoint.parameters)
            call = Call(request.app.state.store, request.path_params, parameters)
            work = _work(endpoint, adapter, call, content)
            response = answer(await in_thread(request.app, work, parameters), started)
        except PinciteError as error:
            response = refusal(error, started)
            if http_status(error) >= 500:
                _log.exception("index.operation_failed", operation=operation)
        except Exception as error:  # noqa: BLE001 - the edge: a bug must still be an answer
            _log.exception("index.operation_failed", operation=operation)
            response = refusal(
                InternalError(f"Service internal error: {type(error).__name__}"), started
            )
        metrics.record(operation, kind, response.status_code, time.perf_counter() - started)
        return response

    return handle


def _work(
    endpoint: Endpoint, adapter: TypeAdapter[Any] | None, call: Call, content: bytes
) -> Callable[[], Any]:
    def work() -> Any:
        if adapter is None and content:
            raise BadRequest("Wrong input: this endpoint takes no body")
        body = None if adapter is None else parse_body(adapter, content)
        return endpoint.perform(replace(call, body=body))

    return work


async def in_thread(app: FastAPI, work: Callable[[], Any], parameters: Parameters) -> Any:
    """Run `work` beside the event loop. Raises TimedOut at the client's deadline; an update that
    has begun is finished all the same."""
    future = asyncio.get_running_loop().run_in_executor(app.state.threads, work)
    try:
        return await asyncio.wait_for(asyncio.shield(future), parameters.timeout_s)
    except TimeoutError as error:
        future.add_done_callback(_note_late_end)
        raise TimedOut(f"Timeout: not done after {parameters.timeout_s:.0f} s") from error


def _note_late_end(future: asyncio.Future[Any]) -> None:
    error = future.exception()
    if error is not None:
        _log.warning("index.late_failure", error=str(error))


def _add_service_routes(app: FastAPI, metrics: IndexMetrics) -> None:
    async def version() -> dict[str, str]:
        return {
            "title": "pincite index - a subset of the Qdrant REST interface",
            "version": QDRANT_VERSION,
        }

    async def healthz() -> Response:
        return PlainTextResponse("healthz check passed")

    async def livez() -> Response:
        return PlainTextResponse("livez check passed")

    async def readyz() -> Response:
        return PlainTextResponse("all shards are ready")

    async def exposition(request: Request) -> Response:
        content = await in_thread(request.app, metrics.exposition, Parameters())
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, route in (
        ("/", version),
        ("/healthz", healthz),
        ("/livez", livez),
        ("/readyz", readyz),
        ("/metrics", exposition),
    ):
        app.add_api_route(path, route, methods=["GET"])
