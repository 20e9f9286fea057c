"""Who asks: a bearer key, an `x-api-key` header, or the browser's session cookie.

All three are the same kind of secret and go through the same check. A cookie is sent by the
browser without being asked, so changing requests that come with it must carry the header below,
which another site's page cannot add without our consent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from core.domain.access import Principal, Scope
from core.errors import NotAuthenticated, NotPermitted
from query.services import Services

SESSION_COOKIE = "pincite_session"
CSRF_HEADER = "x-pincite-csrf"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _get_services(request: Request) -> Services:
    """A dependency; asynchronous, since others cost a change of thread."""
    return services_of(request)


def authenticate(request: Request) -> Principal:
    """The caller. Raises NotAuthenticated, NotPermitted (cookie without the CSRF header)."""
    secret, is_cookie = _secret(request)
    if not secret:
        raise NotAuthenticated(
            "this needs a key",
            hint="send 'Authorization: Bearer <key>', or open the URL that `pincite up` prints",
        )
    if is_cookie and request.method not in _SAFE_METHODS and CSRF_HEADER not in request.headers:
        raise NotPermitted(f"requests with the session cookie need the header {CSRF_HEADER}")
    principal = services_of(request).catalog.access.authenticate(secret)
    request.state.tenant_id = principal.tenant_id  # for the request's log line
    return principal


def has_credentials(request: HTTPConnection) -> bool:
    return any(name in request.headers for name in ("authorization", "x-api-key"))


def is_session(request: HTTPConnection) -> bool:
    """Whether the session cookie is what the caller is known by."""
    return _secret(request)[1]


def _secret(request: HTTPConnection) -> tuple[str, bool]:
    """(the secret, whether it is the cookie). A header that was sent decides, even a wrong one: a
    program that sends a bad key must not act as whoever is logged in."""
    if "authorization" in request.headers:
        scheme, _, token = request.headers["authorization"].partition(" ")
        return (token.strip() if scheme.lower() == "bearer" else ""), False
    if "x-api-key" in request.headers:
        return request.headers["x-api-key"].strip(), False
    return request.cookies.get(SESSION_COOKIE, ""), SESSION_COOKIE in request.cookies


def requires(scope: Scope) -> Callable[[Request], Principal]:
    """A dependency: the caller, who must hold that scope."""

    def check(request: Request) -> Principal:
        principal = authenticate(request)
        principal.require(scope)
        return principal

    return check


Caller = Annotated[Principal, Depends(authenticate)]
Searcher = Annotated[Principal, Depends(requires(Scope.SEARCH))]
Ingester = Annotated[Principal, Depends(requires(Scope.INGEST))]
Operator = Annotated[Principal, Depends(requires(Scope.OPS))]
TheServices = Annotated[Services, Depends(_get_services)]
