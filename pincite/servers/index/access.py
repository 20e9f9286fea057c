"""Who may speak to the index: host names on the loopback interface, and the API key."""

from __future__ import annotations

import hmac
import ipaddress
import time
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import NotAuthenticated, NotPermitted, PinciteError
from pincite.servers.index.requests import refusal

OPEN_PATHS: Final = frozenset({"/", "/healthz", "/livez", "/readyz"})  # as Qdrant has it
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Access:
    """The rules.

    Attributes:
        api_key: the key every request must carry, None = no key needed.
        allowed_hosts: accepted names in the Host header (without port), None = any. On loopback
            this is what stops a web page from reaching the server by DNS rebinding.
        open_metrics: whether `/metrics` needs no key.
    """

    api_key: str | None
    allowed_hosts: frozenset[str] | None = LOOPBACK_NAMES
    open_metrics: bool = True

    def check(self, request: Request) -> None:
        """Raises NotPermitted for a foreign Host, NotAuthenticated without the right key."""
        host = _host_name(request.headers.get("host", ""))
        if self.allowed_hosts is not None and host not in self.allowed_hosts:
            raise NotPermitted("Host header is not allowed")
        path = request.url.path
        if self.api_key is None or path in OPEN_PATHS or (path == "/metrics" and self.open_metrics):
            return
        given = request.headers.get("api-key") or _bearer(request.headers.get("authorization", ""))
        if not given:
            raise NotAuthenticated("Must provide an API key or an Authorization bearer token")
        if not hmac.compare_digest(given.encode(), self.api_key.encode()):
            raise NotAuthenticated("Invalid API key")


def is_loopback(host: str) -> bool:
    """Whether an address or name to bind to is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


def _bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class AccessGate:
    """ASGI middleware that answers refused requests itself, before a body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401 or 403."""
        if scope["type"] == "http":
            started = time.perf_counter()
            try:
                self._access.check(Request(scope))
            except PinciteError as error:
                await refusal(error, started)(scope, receive, send)
                return
        await self._app(scope, receive, send)
