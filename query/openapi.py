"""The OpenAPI document: what FastAPI finds in the routes, with our keys and errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from query.api.schemas.base import OpenAiError, Problem
from query.http.auth import SESSION_COOKIE
from query.http.errors import PROBLEM_JSON
from query.http.openai_errors import speaks_openai

_PUBLIC = frozenset({"/v1/about"})
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
}
_PROBLEM = {
    "description": "What went wrong (RFC 9457)",
    "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_OPENAI_ERROR = {
    "description": "What went wrong, in OpenAI's shape",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OpenAiProblem"}}},
}
_REPLACED = ("HTTPValidationError", "ValidationError")  # FastAPI's own shape, which we never send


def describe(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    found = get_openapi(
        title=app.title,
        version=app.version,
        summary="Answers from your documents that quote the line and show the page.",
        routes=app.routes,
        license_info=app.license_info,
        contact=app.contact,
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _REPLACED:
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    schemas["OpenAiError"] = OpenAiError.model_json_schema()
    schemas["OpenAiProblem"] = {
        "type": "object",
        "properties": {"error": {"$ref": "#/components/schemas/OpenAiError"}},
        "required": ["error"],
    }
    components["securitySchemes"] = _SCHEMES
    for path, operations in found["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _OPENAI_ERROR if speaks_openai(path) else _PROBLEM
            if path not in _PUBLIC:
                operation["security"] = [{name: []} for name in _SCHEMES]
    app.openapi_schema = found
    return found
