"""The one place where error kinds become HTTP: RFC 9457 problem details with a request id."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from core.errors import ErrorKind, Gone, Overloaded, PinciteError, error_classes
from query.http.openai_errors import openai_error, speaks_openai
from query.http.worker_events import Event

# The titles stand here because those of the standard library differ between Python versions.
_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    416: "Range not satisfiable",
    421: "Misdirected request",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
    504: "Timed out",
}
_STATUS = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.OVERLOADED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.INTERNAL: 500,
}
_RETRYABLE = frozenset({ErrorKind.OVERLOADED, ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT})
_MAX_REASONS = 8
PROBLEM_JSON = "application/problem+json"
_log = structlog.get_logger(__name__)


def status_of(error: PinciteError) -> int:
    return 410 if isinstance(error, Gone) else _STATUS[error.kind]


def status_of_code(code: str) -> int:
    """The status of an error that is only known by its code, as in an event."""
    return _STATUS_BY_CODE.get(code, 500)


def is_retryable(error: PinciteError) -> bool:
    """Whether the same request may succeed later."""
    return error.kind in _RETRYABLE


_STATUS_BY_CODE = {kind.code: _STATUS[kind.kind] for kind in error_classes()} | {Gone.code: 410}


def problem(  # noqa: PLR0913 - an error has that many facts
    status: int,
    code: str,
    detail: str,
    *,
    hint: str | None = None,
    request_id: str = "",
    headers: dict[str, str] | None = None,
    param: str | None = None,
) -> JSONResponse:
    """An error as every route answers it: type, title, status, code, detail, request id, hint; in
    OpenAI's shape (`param`: the field that is wrong) where its clients ask."""
    body: dict[str, Any] = {
        "type": f"urn:pincite:error:{code}",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id,
    }
    return _ErrorResponse(
        body | ({"hint": hint} if hint else {}),
        openai_error(status, code, detail, hint=hint, param=param),
        status,
        headers,
    )


class _ErrorResponse(JSONResponse):
    """Chooses its shape when it is sent, since it is the path that decides."""

    def __init__(
        self,
        body: dict[str, Any],
        openai_body: dict[str, Any],
        status: int,
        headers: dict[str, str] | None,
    ) -> None:
        super().__init__(body, status_code=status, headers=headers, media_type=PROBLEM_JSON)
        self._openai = JSONResponse(openai_body, status_code=status, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if speaks_openai(scope["path"]):
            await self._openai(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def problem_of_event(event: Event, request_id: str) -> JSONResponse:
    """Of an answer that ended in an `error` event."""
    return problem(
        status_of_code(event["code"]),
        event["code"],
        event["message"],
        hint=event.get("hint"),
        request_id=request_id,
    )


def problem_of(error: PinciteError, request_id: str) -> JSONResponse:
    """Of an error that we raised on purpose; its message is meant to be read."""
    status = status_of(error)
    if status >= 500:
        _log.warning("http.error", code=error.code, message=error.message, **_facts(error))
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return problem(
        status,
        error.code,
        error.message,
        hint=error.hint,
        request_id=request_id,
        headers=headers,
        param=_param_of(error),
    )


def problem_unexpected(request_id: str) -> JSONResponse:
    """Of an exception nobody foresaw: nothing of its text reaches the client."""
    return problem(
        500,
        "internal_error",
        "something went wrong on our side",
        hint="the server's log has the details under this request id",
        request_id=request_id,
    )


def install_error_handlers(app: FastAPI) -> None:
    """Everything but the unforeseen, which `middleware.RequestContext` catches."""

    @app.exception_handler(PinciteError)
    async def known(request: Request, error: PinciteError) -> JSONResponse:
        return problem_of(error, request_id_of(request))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        # Where and why, never the value: it may be a question or a key in the wrong place.
        reasons = [
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors()
        ]
        return problem(
            422,
            "invalid_request",
            "; ".join(reasons[:_MAX_REASONS]),
            request_id=request_id_of(request),
            param=_first_field(error),
        )

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> JSONResponse:
        title = _TITLES.get(error.status_code) or HTTPStatus(error.status_code).phrase
        return problem(
            error.status_code,
            title.lower().replace(" ", "_"),
            error.detail if error.detail else title,
            request_id=request_id_of(request),
            headers=dict(error.headers or {}),
        )


def _first_field(error: RequestValidationError) -> str | None:
    """The first wrong field, by its outermost name."""
    places = [detail["loc"] for detail in error.errors()]
    return next((str(place[1]) for place in places if len(place) > 1), None)


def _param_of(error: PinciteError) -> str | None:
    param = error.context.get("param")
    return param if isinstance(param, str) else None


def request_id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))


def _facts(error: PinciteError) -> dict[str, object]:
    return {f"error_{name}": value for name, value in error.context.items()}
