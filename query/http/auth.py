"""Who asks: a bearer key, an `x-api-key` header, or the browser's session cookie.

All three are the same kind of secret and go through the same check. A cookie is sent by the
browser without being asked, so changing requests that come with it must carry the header below,
which another site's page cannot add without our consent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import structlog
from fastapi import Depends, Request

from core.domain.access import Principal, Scope
from core.errors import NotAuthenticated, NotPermitted
from query.services import Services

SESSION_COOKIE = "pincite_session"
CSRF_HEADER = "x-pincite-csrf"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def get_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def authenticate(request: Request) -> Principal:
    """The caller. Raises NotAuthenticated, NotPermitted (cookie without the CSRF header)."""
    secret, is_cookie = _secret(request)
    if secret is None:
        raise NotAuthenticated(
            "this needs a key",
            hint="send 'Authorization: Bearer <key>', or open the URL that `pincite up` prints",
        )
    if is_cookie and request.method not in _SAFE_METHODS and CSRF_HEADER not in request.headers:
        raise NotPermitted(f"requests with the session cookie need the header {CSRF_HEADER}")
    principal = get_services(request).catalog.access.authenticate(secret)
    structlog.contextvars.bind_contextvars(tenant_id=principal.tenant_id)
    return principal


def _secret(request: Request) -> tuple[str | None, bool]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip(), False
    if key := request.headers.get("x-api-key"):
        return key, False
    cookie = request.cookies.get(SESSION_COOKIE)
    return cookie, cookie is not None


def requires(scope: Scope) -> Callable[[Request], Principal]:
    """A dependency: the caller, who must hold that scope."""

    def check(request: Request) -> Principal:
        principal = authenticate(request)
        principal.require(scope)
        return principal

    return check


Searcher = Annotated[Principal, Depends(requires(Scope.SEARCH))]
Ingester = Annotated[Principal, Depends(requires(Scope.INGEST))]
Operator = Annotated[Principal, Depends(requires(Scope.OPS))]
TheServices = Annotated[Services, Depends(get_services)]
