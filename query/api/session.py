"""Logging in with the printed code, and what this service is."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from core.domain.access import Principal, Scope
from core.domain.operations import CreatedKey
from core.errors import NotAuthenticated
from core.ids import is_login_code
from core.settings import SOURCE_URL
from query.api.audit import write_audit
from query.api.schemas.operations import About, Me
from query.http.auth import SESSION_COOKIE, Caller, TheServices, authenticate, is_session
from query.http.errors import request_id_of
from query.page import page_response
from query.services import Services

router = APIRouter(tags=["session"])


@router.get("/login", include_in_schema=False)
def log_in(request: Request, services: TheServices, code: str = "") -> Response:
    """Trade a single-use code for a session cookie, and go to the page.

    A code that is wrong, used or too old is a 401: the page itself for a browser, which tells what
    to do. Who is logged in already (the link was clicked twice) just goes to the page.
    """
    principal = _principal_of(services, code)
    if principal is None:
        return _refuse(request)
    life = timedelta(days=services.settings.api.session_days)
    session = _open_session(services, principal, life)
    write_audit(services, request_id_of(request), principal, "session.open", session.key_id)
    response = _to_page()
    response.set_cookie(
        SESSION_COOKIE,
        session.secret or "",
        max_age=int(life.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=_is_https(request, services),
        path="/",
    )
    return response


@router.post("/v1/logout", status_code=204)
def log_out(request: Request, principal: Caller, services: TheServices) -> Response:
    """End the browser's session. A key that came in a header stays valid."""
    if is_session(request) and principal.key_id is not None:
        services.catalog.access.revoke_key(principal, principal.key_id)
        write_audit(services, request_id_of(request), principal, "session.end", principal.key_id)
    response = Response(status_code=204)
    response.delete_cookie(
        SESSION_COOKIE, path="/", httponly=True, secure=_is_https(request, services)
    )
    return response


@router.get("/v1/about")
def about(services: TheServices) -> About:
    """Name, version, licence and where the source of this running service is (AGPL section 13)."""
    return About(
        name="Pincite",
        version=services.version,
        license="AGPL-3.0-or-later",
        source=SOURCE_URL,
    )


@router.get("/v1/me")
def me(principal: Caller, services: TheServices) -> Me:
    """What the caller may do."""
    return Me(
        subject=principal.subject,
        scopes=sorted(scope.value for scope in Scope if principal.has(scope)),
        collections=None if principal.collections is None else sorted(principal.collections),
        max_upload_bytes=services.settings.api.max_upload_bytes,
        max_question_chars=services.settings.answer.max_question_chars,
    )


def _principal_of(services: Services, code: str) -> Principal | None:
    # Not any key: a session outlives a key's expiry, and keys do not belong into addresses.
    if not is_login_code(code):
        return None
    try:
        return services.catalog.access.authenticate(code)
    except NotAuthenticated:
        return None


def _open_session(services: Services, principal: Principal, life: timedelta) -> CreatedKey:
    return services.catalog.access.create_key(
        principal.tenant_id,
        name="browser session",
        scopes=principal.scopes,
        collections=principal.collections,
        expires_at=services.clock.now() + life,
    )


def _is_https(request: Request, services: Services) -> bool:
    """Behind a proxy the connection is plain; the configured address tells."""
    return request.url.scheme == "https" or services.settings.api.public_url.startswith("https:")


def _to_page() -> RedirectResponse:
    return RedirectResponse("/", status_code=303)


def _refuse(request: Request) -> Response:
    if is_session(request):
        with suppress(NotAuthenticated):
            authenticate(request)
            return _to_page()
    if "text/html" in request.headers.get("accept", ""):
        return page_response(401)
    raise NotAuthenticated(
        "this login code is not valid: it was used, or is too old",
        hint="`pincite up` prints a new address",
    )
