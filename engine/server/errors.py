"""What the server answers when it cannot do what was asked, in OpenAI's shape.

`{"error": {"message", "type", "param", "code"}}`: programs read `code`, which is stable; `param`
names the offending parameter. Text of exceptions never gets into a response: messages are written
here or by the engine for the client.
"""

from __future__ import annotations

import math
from typing import Any

from fastapi.responses import JSONResponse, Response

from engine.errors import EngineError, EngineStopped, InvalidRequest, QueueFull


class ApiError(EngineError):
    """An answer with an error status.

    Args:
        status: of HTTP.
        message: for a person; goes to the client as it is.
        code: stable, for programs.
        param: the parameter that is wrong, in OpenAI's words.
        retry_after_s: tells the client when to come again.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> dict[str, Any]:
        """OpenAI's error object."""
        return {
            "error": {
                "message": self.message,
                "type": _type_of(self.status),
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> Response:
        """The whole answer."""
        headers: dict[str, str] = {}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after_s)))
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.body, self.status, headers)


def as_api_error(error: Exception) -> ApiError:
    """What a client is told of any error; an unforeseen one is told without its text."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, InvalidRequest):
        return ApiError(400, str(error), code=error.code, param=error.param)
    if isinstance(error, QueueFull):
        return ApiError(429, str(error), code=error.code, retry_after_s=error.retry_after_s)
    if isinstance(error, EngineStopped):
        return stopping()
    return ApiError(500, "the engine failed; its log says why", code="engine_error")


def invalid(message: str, param: str | None, *, code: str = "invalid_request") -> ApiError:
    """A request that is wrong; `param` says where."""
    return ApiError(400, message, code=code, param=param)


def stopping() -> ApiError:
    """The server goes down: another one, or this one after a restart, may answer."""
    return ApiError(503, "the engine is stopping", code="engine_stopped", retry_after_s=5)


def loading() -> ApiError:
    """The model is not loaded yet."""
    return ApiError(503, "the model is still loading", code="engine_loading", retry_after_s=2)


def _type_of(status: int) -> str:
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"
