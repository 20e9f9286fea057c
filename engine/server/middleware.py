"""Around every request: an id, one log line, access, and no text of exceptions in answers."""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders

from engine.server.access import PROBES
from engine.server.errors import ApiError, as_api_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from engine.server.access import Access

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
log = logging.getLogger(__name__)


class RequestGate:
    """The outermost layer. Refuses foreigners before a body is read; stamps the arrival, from which
    the time to the first token counts; writes one line a request, without anything of its text."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        offered = headers.get("x-request-id", "")
        request_id = offered if _REQUEST_ID.fullmatch(offered) else uuid.uuid4().hex
        state: dict[str, Any] = scope.setdefault("state", {})
        state.update(request_id=request_id, arrival_s=time.monotonic())
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = MutableHeaders(scope=message)
                added["X-Request-ID"] = request_id
                added["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            state["caller"] = self._access.identify(scope["path"], headers)
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            if not isinstance(error, ApiError):
                log.exception("engine.unexpected", extra={"facts": {"request_id": request_id}})
            if status:  # too late for an answer: the server must break the connection off
                raise ResponseBrokenOff from error
            await as_api_error(error).response()(scope, receive, send_with_id)
        finally:
            _log_request(scope, status)


class ResponseBrokenOff(Exception):
    """A response failed after it had begun; the cause was logged already."""


def _log_request(scope: Scope, status: int) -> None:
    state = scope["state"]
    facts = {
        "request_id": state["request_id"],
        "method": scope["method"],
        "path": scope["path"][:200],
        "status": status or None,  # None: the client left before there was one
        "duration_ms": round((time.monotonic() - state["arrival_s"]) * 1000, 1),
    }
    usage = state.get("usage")
    if usage is not None:
        facts["prompt_tokens"] = usage.num_prompt_tokens
        facts["cached_tokens"] = usage.num_cached_tokens
        facts["completion_tokens"] = usage.num_completion_tokens
    level = logging.DEBUG if scope["path"] in PROBES else logging.INFO
    log.log(level, "engine.request", extra={"facts": facts})
