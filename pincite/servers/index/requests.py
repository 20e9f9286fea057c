"""Reading requests strictly and writing answers in Qdrant's shape. Knows nothing of shards."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from core.errors import PinciteError
from pincite.servers.index.errors import BadRequest, RequestTooLarge, UnsupportedField, http_status
from pincite.servers.index.subset import refuse_unsupported

MAX_BODY_BYTES: Final = 32 * 1024 * 1024  # Qdrant's own default
_MAX_DETAILS: Final = 3
_CONSISTENCY: Final = frozenset({"1", "majority", "quorum", "all"})
_ORDERING: Final = frozenset({"weak", "medium", "strong"})

READ_PARAMETERS: Final = frozenset({"timeout", "consistency"})
WRITE_PARAMETERS: Final = frozenset({"wait", "ordering", "timeout"})
CHANGE_PARAMETERS: Final = frozenset({"timeout"})


@dataclass(frozen=True)
class Parameters:
    """The query string.

    Attributes:
        wait: whether the client wants the update done before the answer (it always is; this
            only chooses the word `completed` or `acknowledged`).
        timeout_s: answer after this time at the latest, or None.
    """

    wait: bool = False
    timeout_s: float | None = None


def read_parameters(given: Iterable[tuple[str, str]], allowed: frozenset[str]) -> Parameters:
    """Check a query string.

    `ordering` and `consistency` promise something about replicas; one node keeps every such
    promise, except to read from more replicas than there are.

    Raises UnsupportedField for a parameter that is not allowed here, BadRequest for its value.
    """
    values: dict[str, str] = {}
    for name, value in given:
        if name not in allowed or name in values:
            raise UnsupportedField(f"Not supported by this server: query parameter `{name}`")
        values[name] = value
    _one_of(values, "wait", frozenset({"true", "false"}))
    _one_of(values, "ordering", _ORDERING)
    _one_of(values, "consistency", _CONSISTENCY)
    timeout = values.get("timeout")
    if timeout is not None and (not timeout.isdecimal() or int(timeout) < 1):
        raise BadRequest(f"Wrong input: query parameter `timeout`: `{timeout[:20]}`")
    return Parameters(
        wait=values.get("wait") == "true",
        timeout_s=None if timeout is None else float(timeout),
    )


def _one_of(values: Mapping[str, str], name: str, accepted: frozenset[str]) -> None:
    if name in values and values[name] not in accepted:
        raise BadRequest(
            f"Wrong input: query parameter `{name}` must be one of {', '.join(sorted(accepted))}"
        )


async def read_body(request: Request) -> bytes:
    """The body, at most `MAX_BODY_BYTES`. Raises RequestTooLarge while it is still arriving."""
    parts: list[bytes] = []
    num_bytes = 0
    async for part in request.stream():
        num_bytes += len(part)
        if num_bytes > MAX_BODY_BYTES:
            raise RequestTooLarge(f"Payload too large: more than {MAX_BODY_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def parse_body(adapter: TypeAdapter[Any], content: bytes) -> Any:
    """Validate a body strictly (no `"10"` for 10, no NaN) and refuse what is not honoured.

    Raises BadRequest or UnsupportedField; messages name places, never values.
    """
    try:
        if b"NaN" in content or b"Infinity" in content:
            from_json(content, allow_inf_nan=False)  # the words may stand inside a string
        body = adapter.validate_json(content, strict=True)
    except ValidationError as error:
        raise BadRequest(f"Format error in JSON body: {_explain(error)}") from error
    except ValueError as error:
        raise BadRequest(f"Format error in JSON body: {error}") from error
    refuse_unsupported(body)
    return body


def _explain(error: ValidationError) -> str:
    # A union reports every branch that failed. An unknown key is the likeliest reason, and the
    # longest place belongs to the branch that was meant.
    details = error.errors(include_url=False, include_context=False, include_input=False)
    details.sort(key=lambda item: (item["type"] != "extra_forbidden", -len(item["loc"])))
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}"
        for item in details[:_MAX_DETAILS]
    )


def answer(result: Any, started: float) -> Response:
    """A result in Qdrant's envelope; `started` is a `time.perf_counter()` value."""
    content = {"result": result, "status": "ok", "time": time.perf_counter() - started}
    return Response(to_json(content), media_type="application/json")


def refusal(error: PinciteError, started: float) -> Response:
    """An error in Qdrant's shape; the hint, if there is one, follows the message."""
    text = error.message if error.hint is None else f"{error.message} ({error.hint})"
    content = {"status": {"error": text}, "time": time.perf_counter() - started}
    return Response(
        json.dumps(content, ensure_ascii=True),
        status_code=http_status(error),
        media_type="application/json",
    )
