"""create_app: the API and the page, assembled from services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import anyio.to_thread
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from core.settings import SOURCE_URL, ApiSettings
from query.api import (
    answers,
    chat,
    collections,
    conversations,
    documents,
    files,
    jobs,
    operations,
    pages,
    search,
    session,
)
from query.http.auth import Caller
from query.http.errors import install_error_handlers
from query.http.middleware import AllowedHosts, BodyLimit, RequestContext
from query.http.slots import Slots, Threads
from query.openapi import describe
from query.page import add_page
from query.services import Services

_RENDER_THREADS = 4  # a few more than parser children draw at once
_ROUTERS = (
    answers,
    chat,
    conversations,
    search,
    documents,
    files,
    pages,
    jobs,
    collections,
    operations,
    session,
)


def create_app(services: Services) -> FastAPI:
    """The ASGI application. It owns the services: they are closed when it ends."""
    api = services.settings.api

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Routes that wait run in this many threads at the most; uploads and answers in their own.
        anyio.to_thread.current_default_thread_limiter().total_tokens = api.threads
        yield
        if services.chat_proxy is not None:
            await services.chat_proxy.close()
        services.close()

    app = FastAPI(
        title="Pincite",
        version=services.version,
        license_info={"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
        contact={"name": "Source", "url": SOURCE_URL},
        lifespan=lifespan,
        docs_url=None,  # its assets come from another origin
        redoc_url=None,
        openapi_url=None,  # served below, for callers with a key
        generate_unique_id_function=_operation_id,
    )
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    app.state.services = services
    app.state.upload_slots = Slots(api.max_uploads, "too many uploads at once", 2.0)
    app.state.answer_slots = Slots(api.max_answers, "too many questions at once", 1.0)
    app.state.render_threads = Threads(_RENDER_THREADS)
    app.state.readiness = operations.Readiness()
    app.state.running_answers = set()
    install_error_handlers(app)
    for module in _ROUTERS:
        app.include_router(module.router)
    add_page(app)

    @app.get("/v1/openapi.json", include_in_schema=False)
    def openapi(_: Caller) -> JSONResponse:
        return JSONResponse(app.openapi())

    app.add_middleware(BodyLimit, max_bytes=api.max_body_bytes, streamed_paths=["/v1/documents"])
    app.add_middleware(AllowedHosts, allowed=_allowed_hosts(api))
    app.add_middleware(RequestContext)
    return app


def _operation_id(route: APIRoute) -> str:
    """The function's name: what generated clients call the method."""
    return route.name


def _allowed_hosts(api: ApiSettings) -> Iterable[str]:
    public = urlsplit(api.public_url).hostname
    return [*api.allowed_hosts, *([public] if public else [])]
