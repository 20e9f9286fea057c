"""create_app: the API and the page, assembled from services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from core.settings import SOURCE_URL
from query.api import answers, collections, documents, jobs, operations, pages, search, session
from query.http.errors import install_error_handlers
from query.http.middleware import AllowedHosts, RequestContext
from query.services import Services

_STATIC = Path(__file__).parent / "static"


def create_app(services: Services) -> FastAPI:
    """The ASGI application. It owns the services: they are closed when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Routes are synchronous and run in this many threads at the most.
        anyio.to_thread.current_default_thread_limiter().total_tokens = (
            services.settings.api.threads
        )
        yield
        services.close()

    app = FastAPI(
        title="Pincite",
        version=services.version,
        license_info={"name": "AGPL-3.0-or-later"},
        contact={"name": "Source", "url": SOURCE_URL},
        lifespan=lifespan,
        docs_url=None,  # its assets come from another origin
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.services = services
    install_error_handlers(app)
    for module in (answers, search, documents, pages, jobs, collections, operations, session):
        app.include_router(module.router)
    _add_page(app)
    app.add_middleware(AllowedHosts, allowed=services.settings.api.allowed_hosts)
    app.add_middleware(RequestContext)
    return app


def _add_page(app: FastAPI) -> None:
    index = _STATIC / "index.html"
    no_store = {"Cache-Control": "no-store"}
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")

    @app.get("/", include_in_schema=False)
    def home() -> FileResponse:
        return FileResponse(index, headers=no_store)

    @app.get("/view/{document_id}", include_in_schema=False)
    def view(document_id: str) -> FileResponse:  # noqa: ARG001  # the page's script reads it
        return FileResponse(index, headers=no_store)
