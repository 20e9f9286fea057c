"""Errors of the model server and where they become TEI's status codes and error types.

EmptyRequest        400  Empty
Refused             413  Validation      too many texts, too long a text, a field we do not have
BadBody             422  Tokenizer       not the shape of the endpoint
BackendFailed       424  Backend         the model raised; the request may be repeated
Overloaded          429  Overloaded      with Retry-After
NotAuthenticated    401, NotPermitted 403, NotFound 404  Validation
"""

from __future__ import annotations

import math

from fastapi.responses import JSONResponse, Response

from core.errors import ErrorKind, InternalError, InvalidInput, Overloaded, PinciteError


class EmptyRequest(InvalidInput):
    code = "models_empty_request"


class Refused(InvalidInput):
    code = "models_refused"
    kind = ErrorKind.TOO_LARGE


class BadBody(InvalidInput):
    code = "models_bad_body"


class BackendFailed(InternalError):
    code = "models_backend_failed"


class ClientGone(PinciteError):
    """Nobody waits for the answer any more."""

    code = "models_client_gone"


_BY_CLASS: dict[type[PinciteError], tuple[int, str]] = {
    EmptyRequest: (400, "Empty"),
    Refused: (413, "Validation"),
    BadBody: (422, "Tokenizer"),
    BackendFailed: (424, "Backend"),
    ClientGone: (499, "Validation"),
}
_BY_KIND: dict[ErrorKind, tuple[int, str]] = {
    ErrorKind.INVALID: (413, "Validation"),
    ErrorKind.UNAUTHENTICATED: (401, "Validation"),
    ErrorKind.FORBIDDEN: (403, "Validation"),
    ErrorKind.NOT_FOUND: (404, "Validation"),
    ErrorKind.OVERLOADED: (429, "Overloaded"),
    ErrorKind.UNAVAILABLE: (503, "Unhealthy"),
}


def refusal(error: PinciteError) -> Response:
    """The answer of a TEI server for this error: `{"error": ..., "error_type": ...}`."""
    status, error_type = _BY_CLASS.get(type(error)) or _BY_KIND.get(error.kind, (424, "Backend"))
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": error.message, "error_type": error_type}, status, headers)
