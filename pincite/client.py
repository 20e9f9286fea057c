"""A small client of the REST API, for the command line and for scripts.

    with Client("http://127.0.0.1:8000", key) as pincite:
        pincite.ask("How often are the pumps tested?")

Errors come back as the PinciteError of their kind, with the server's message, hint and request id.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from core.errors import (
    Conflict,
    DocumentTooLarge,
    Gone,
    InternalError,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    Overloaded,
    PinciteError,
    TimedOut,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

_BY_STATUS: dict[int, type[PinciteError]] = {
    400: InvalidInput,
    401: NotAuthenticated,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: DocumentTooLarge,
    422: InvalidInput,
    429: Overloaded,
    503: Unavailable,
    504: TimedOut,
}


class Client:
    """Thread-safe. Raises the PinciteError of the answer's status; Unavailable: nobody answers."""

    def __init__(self, base_url: str, key: str, *, timeout_s: float = 60.0) -> None:
        self.base_url = base_url
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout_s,
            trust_env=False,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def add_document(self, path: Path, *, collection: str = "default") -> dict[str, Any]:
        """Upload one file under its own name, streamed. Returns the accepted version."""
        with path.open("rb") as body:
            return self._call(
                "POST",
                "/v1/documents",
                params={"collection": collection, "filename": path.name},
                content=body,
                headers={"Content-Type": "application/octet-stream"},
            )

    def documents(self, **filters: str | None) -> Iterator[dict[str, Any]]:
        """All documents, newest first. Filters: status, collection."""
        return self._pages("/v1/documents", filters)

    def document(self, document_id: str) -> dict[str, Any]:
        return self._call("GET", f"/v1/documents/{_quoted(document_id)}")

    def page(self, document_id: str, number: int) -> dict[str, Any]:
        """The stored text of one page, with its size and printed label."""
        return self._call("GET", f"/v1/documents/{_quoted(document_id)}/pages/{number}")

    def delete_document(self, document_id: str) -> None:
        """Raises NotFound."""
        self._call("DELETE", f"/v1/documents/{_quoted(document_id)}")

    def jobs(self) -> Iterator[dict[str, Any]]:
        return self._pages("/v1/jobs", {})

    def job(self, job_id: str) -> dict[str, Any]:
        return self._call("GET", f"/v1/jobs/{_quoted(job_id)}")

    def retry_job(self, job_id: str) -> dict[str, Any]:
        return self._call("POST", f"/v1/jobs/{_quoted(job_id)}/retry")

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        return self._call("POST", f"/v1/jobs/{_quoted(job_id)}/cancel")

    def search(
        self, query: str, *, collections: Sequence[str] = (), limit: int = 8
    ) -> dict[str, Any]:
        body = {"query": query, "collections": list(collections), "limit": limit}
        return self._call("POST", "/v1/search", json=body)

    def ask(
        self, question: str, *, collections: Sequence[str] = (), mode: str | None = None
    ) -> dict[str, Any]:
        """The whole answer object (answers.md). `mode`: extractive, generative or auto; None: as
        the server is configured."""
        body: dict[str, Any] = {"question": question, "collections": list(collections)}
        if mode is not None:
            body["mode"] = mode
        return self._call("POST", "/v1/answers", json=body)

    def ingest_state(self) -> dict[str, Any]:
        return self._call("GET", "/v1/ops/ingest")

    def about(self) -> dict[str, Any]:
        return self._call("GET", "/v1/about")

    def _pages(self, path: str, filters: dict[str, str | None]) -> Iterator[dict[str, Any]]:
        params = {name: value for name, value in filters.items() if value}
        while True:
            page = self._call("GET", path, params=params)
            yield from page["data"]
            if not page.get("next_cursor"):
                return
            params = params | {"cursor": page["next_cursor"]}

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.TimeoutException as error:
            raise TimedOut(f"{self.base_url} did not answer in time") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unavailable(
                f"nobody answers at {self.base_url}", hint="is `pincite up` running?"
            ) from error
        if not response.is_success:
            raise _error_from(response)
        if response.status_code == httpx.codes.NO_CONTENT:
            return {}
        body = _json_of(response)
        if body is None:
            raise InternalError(f"what answers at {self.base_url} is not Pincite")
        return body


def _quoted(name: str) -> str:
    """An id as one segment of a path, whatever somebody typed."""
    return quote(name, safe="") or "-"


def _json_of(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return body if isinstance(body, dict) else None


def _error_from(response: httpx.Response) -> PinciteError:
    problem = _json_of(response) or {}
    kind = _BY_STATUS.get(response.status_code, InternalError)
    message = problem.get("detail") or f"the server answered {response.status_code}"
    facts = {"hint": problem.get("hint"), "request_id": problem.get("request_id")}
    if kind is Overloaded:
        wait = response.headers.get("retry-after", "")
        return Overloaded(message, retry_after_s=float(wait) if wait.isdecimal() else 1.0, **facts)
    return kind(message, **facts)
