"""Every route of the application, and requests to them, made from the routes themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from query.http.auth import CSRF_HEADER, SESSION_COOKIE

# Answered without a key, each for a reason: probes, the licence's source offer, the page itself.
PUBLIC = {
    "/",
    "/view/{document_id}",
    "/static",
    "/favicon.ico",
    "/livez",
    "/readyz",
    "/login",
    "/v1/about",
}
# Open on loopback only; has tests of its own.
OWN_RULES = {"/metrics"}
QUERY = {
    "/v1/documents/{document_id}/pages/{page}/rects": {"start": "0", "end": "3"},
    "/v1/documents": {"filename": "a.pdf"},
}
JSON_BODY: dict[str, Any] = {
    "/v1/answers": {"question": "How often are the pumps tested?"},
    "/v1/search": {"query": "pumps"},
    "/v1/conversations": {},
    "/v1/chat/completions": {
        "model": "rag",
        "messages": [{"role": "user", "content": "How often are the pumps tested?"}],
    },
    "/v1/internal/object-events": {"Records": []},
}
_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Route:
    method: str
    path: str

    @property
    def parameters(self) -> list[str]:
        return _PARAMETER.findall(self.path)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def all_routes(app: FastAPI) -> list[Route]:
    return sorted(set(_walk(app.routes)), key=str)


def _walk(routes: Iterable[Any]) -> Iterator[Route]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _walk(inner.routes)
            continue
        for method in getattr(route, "methods", None) or {"GET"}:
            yield Route(method, route.path.replace(":path}", "}"))


def closed_routes(app: FastAPI) -> list[Route]:
    """Those that need a key."""
    return [route for route in all_routes(app) if route.path not in PUBLIC | OWN_RULES]


def send(client: TestClient, route: Route, ids: Mapping[str, str]) -> Any:
    """A well-formed request to the route, with these ids in its path."""
    path = _PARAMETER.sub(lambda found: ids[found[1]], route.path)
    body = JSON_BODY.get(route.path) if route.method == "POST" else None
    return client.request(route.method, path, params=QUERY.get(route.path), json=body)


def credentials(secret: str) -> dict[str, dict[str, str]]:
    """The three ways to say who one is: headers by name of the way."""
    return {
        "bearer": {"Authorization": f"Bearer {secret}"},
        "header": {"x-api-key": secret},
        "cookie": {"Cookie": f"{SESSION_COOKIE}={secret}", CSRF_HEADER: "1"},
    }
