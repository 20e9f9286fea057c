"""The one place where error kinds become HTTP: RFC 9457 problem details with a request id."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from core.errors import ErrorKind, Gone, Overloaded, PinciteError

_STATUS = {
    ErrorKind.INVALID: HTTPStatus.BAD_REQUEST,
    ErrorKind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ErrorKind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    ErrorKind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorKind.CONFLICT: HTTPStatus.CONFLICT,
    ErrorKind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorKind.OVERLOADED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorKind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorKind.TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT,
    ErrorKind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_log = structlog.get_logger(__name__)


def status_of(error: PinciteError) -> HTTPStatus:
    return HTTPStatus.GONE if isinstance(error, Gone) else _STATUS[error.kind]


def problem(
    status: HTTPStatus, code: str, detail: str, *, hint: str | None = None, request_id: str = ""
) -> dict[str, Any]:
    """The body of an error."""
    body: dict[str, Any] = {
        "type": f"urn:pincite:error:{code}",
        "title": status.phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        "request_id": request_id,
    }
    return body | ({"hint": hint} if hint else {})


def install_error_handlers(app: FastAPI) -> None:
    """No exception text of other people's code ever reaches a client."""

    @app.exception_handler(PinciteError)
    async def known(request: Request, error: PinciteError) -> JSONResponse:
        status = status_of(error)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.warning("http.error", code=error.code, message=error.message)
        headers = {}
        if isinstance(error, Overloaded):
            headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        return _respond(request, status, error.code, error.message, error.hint, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        reasons = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors()
        )
        return _respond(
            request, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", reasons, None, {}
        )

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> JSONResponse:
        status = HTTPStatus(error.status_code)
        code = status.name.lower()
        return _respond(request, status, code, status.phrase, None, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> JSONResponse:
        _log.error("http.unexpected", exc_info=error)
        return _respond(
            request,
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "internal_error",
            "something went wrong on our side",
            "the server's log has the details under this request id",
            {},
        )


def _respond(
    request: Request,
    status: HTTPStatus,
    code: str,
    detail: str,
    hint: str | None,
    headers: dict[str, str],
) -> JSONResponse:
    request_id = getattr(request.state, "request_id", "")
    return JSONResponse(
        problem(status, code, detail, hint=hint, request_id=request_id),
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )
