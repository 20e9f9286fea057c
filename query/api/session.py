"""Logging in with the printed code, and what this service is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from core.domain.access import Scope
from core.settings import SOURCE_URL
from query.http.auth import SESSION_COOKIE, Searcher, TheServices

router = APIRouter(tags=["session"])


@router.get("/login", include_in_schema=False)
def log_in(code: str, request: Request, services: TheServices) -> Response:
    """Trade a single-use code for a session cookie, and go to the page."""
    access = services.catalog.access
    principal = access.authenticate(code)
    life = timedelta(days=services.settings.api.session_days)
    session = access.create_key(
        principal.tenant_id,
        name="browser session",
        scopes=principal.scopes,
        collections=principal.collections,
        expires_at=datetime.now(UTC) + life,
    )
    response = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
    response.set_cookie(
        SESSION_COOKIE,
        session.secret or "",
        max_age=int(life.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path="/",
    )
    return response


@router.post("/v1/logout", status_code=204)
def log_out(principal: Searcher, services: TheServices) -> Response:
    """Revoke the key this request came with, and forget the cookie."""
    if principal.key_id is not None:
        services.catalog.access.revoke_key(principal, principal.key_id)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


@router.get("/v1/about")
def about(services: TheServices) -> dict[str, Any]:
    """Name, version, licence and where the source of this running service is (AGPL section 13)."""
    return {
        "name": "Pincite",
        "version": services.version,
        "license": "AGPL-3.0-or-later",
        "source": SOURCE_URL,
    }


@router.get("/v1/me")
def me(principal: Searcher) -> dict[str, Any]:
    """What the caller may do."""
    return {
        "subject": principal.subject,
        "scopes": sorted(scope.value for scope in Scope if principal.has(scope)),
        "collections": None if principal.collections is None else sorted(principal.collections),
    }
