"""The page that browsers get: static files, and one document for every address of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"


def page_response(status: int = 200) -> FileResponse:
    """The page; its script looks at the address."""
    return FileResponse(STATIC / "index.html", status_code=status)


class PageFiles(StaticFiles):
    """The page's files: kept by the browser, asked for again each time (their names do not change
    with a release)."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


def add_page(app: FastAPI) -> None:
    app.mount("/static", PageFiles(directory=STATIC), name="static")

    @app.get("/", include_in_schema=False)
    @app.head("/", include_in_schema=False)
    def home() -> FileResponse:
        return page_response()

    @app.get("/view/{document_id}", include_in_schema=False)
    def view(document_id: str) -> FileResponse:  # noqa: ARG001  # the page's script reads it
        return page_response()

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> FileResponse:
        """Asked for by browsers that show something else than the page, such as a file."""
        return FileResponse(STATIC / "icon.svg", headers={"Cache-Control": "no-cache"})
