"""Who may speak to the model server: host names on the loopback interface, and the API key.

The index server has the same rules in Qdrant's words; sharing its module would load the Qdrant
client here, which is 45 MB.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import NotAuthenticated, NotPermitted, PinciteError
from pincite.servers.models.errors import refusal

HEALTH_PATHS: Final = frozenset({"/health", "/livez", "/readyz"})
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Access:
    """The rules.

    Attributes:
        api_key: what every request but those for health must carry as a bearer token; None = none.
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
            raise NotPermitted("this Host header is not allowed")
        path = request.url.path
        if path in HEALTH_PATHS or (path == "/metrics" and self.open_metrics):
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key is not None and not hmac.compare_digest(
            given.encode(), self.api_key.encode()
        ):
            raise NotAuthenticated("a bearer token is needed, and this is not it")


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


class AccessGate:
    """ASGI middleware that answers refused requests itself, before a body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401 or 403."""
        if scope["type"] == "http":
            try:
                self._access.check(Request(scope))
            except PinciteError as error:
                await refusal(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
