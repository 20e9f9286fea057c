"""Pure ASGI middleware: request ids and security headers, host allow-list, size of bodies."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from core.ids import new_request_id
from query.http.errors import problem, problem_unexpected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'self'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",  # answers and documents are nobody else's; routes may loosen it
}
_PROBES = frozenset({"/livez", "/readyz"})
_log = structlog.get_logger(__name__)


class RequestContext:
    """The outermost layer: gives each request an id (the client's if it is well formed), binds it
    to the log lines, adds the security headers to every response, turns unforeseen exceptions into
    a problem without their text, and writes one log line a request (never the query string)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        offered = Headers(scope=scope).get("x-request-id", "")
        request_id = offered if _REQUEST_ID.fullmatch(offered) else new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.monotonic()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            _log.exception("http.unexpected", path=scope["path"])
            if status:  # too late for an answer: the server must break the connection off
                raise ResponseBrokenOff from error
            await problem_unexpected(request_id)(scope, receive, send_with_headers)
        finally:
            _log_request(scope, status, started)


class ResponseBrokenOff(Exception):
    """A response failed after it had begun; the cause was logged already."""


def _log_request(scope: Scope, status: int, started: float) -> None:
    log = _log.debug if scope["path"] in _PROBES else _log.info
    log(
        "http.request",
        method=scope["method"],
        path=scope["path"],
        status=status or None,
        duration_ms=round((time.monotonic() - started) * 1000, 1),
        tenant_id=scope["state"].get("tenant_id"),
    )


class AllowedHosts:
    """Refuses a Host that is not ours: a page of another site whose name resolves to loopback (DNS
    rebinding) must not read what is open there. `*` allows all; the probes answer to any name,
    since an orchestrator asks by address."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(host.lower() for host in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        response = problem(
            421,
            "host_not_allowed",
            "this host name is not allowed",
            hint="add it to PINCITE_API__ALLOWED_HOSTS",
            request_id=scope["state"]["request_id"],
        )
        await response(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        if "*" in self._allowed or scope["path"] in _PROBES:
            return True
        hosts = Headers(scope=scope).getlist("host")
        return len(hosts) == 1 and host_name(hosts[0]) in self._allowed


def host_name(host: str) -> str:
    """The name in a Host header, in lower case, without the port; IPv6 keeps its brackets. Empty
    for what is no host."""
    match = _HOST.fullmatch(host.lower())
    return match[1] if match else ""


class BodyLimit:
    """Refuses bodies over `max_bytes` while they are read, whatever length was announced. Uploads
    have a limit of their own and are streamed."""

    def __init__(self, app: ASGIApp, max_bytes: int, streamed_paths: Iterable[str]) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._streamed_paths = frozenset(streamed_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._streamed_paths:
            await self._app(scope, receive, send)
            return
        num_bytes = 0

        async def receive_limited() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > self._max_bytes:
                raise HTTPException(413, f"the body is larger than {self._max_bytes} bytes")
            return message

        await self._app(scope, receive_limited, send)
