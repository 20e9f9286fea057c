"""Errors in OpenAI's shape, on the paths that speak its language."""

from __future__ import annotations

from typing import Any

_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/models",
    "/v1/responses",
)
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def speaks_openai(path: str) -> bool:
    """Whether a path answers in OpenAI's shapes, its errors included."""
    return any(path == known or path.startswith(f"{known}/") for known in _PATHS)


def openai_error(
    status: int, code: str, message: str, *, hint: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """The body of an error. The hint becomes part of the message, the only text clients show."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    text = message if hint is None else f"{message} ({hint})"
    return {"error": {"message": text, "type": kind, "param": param, "code": code}}
