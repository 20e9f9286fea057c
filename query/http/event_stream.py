"""Answering with events (text/event-stream), or with what they end in.

Both run the generator of events in a worker thread and stop it at once when the client leaves,
which is noticed while nothing is being sent, too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

import anyio
import structlog
from starlette.responses import Response, StreamingResponse

from core.errors import InternalError, PinciteError
from query.http.errors import is_retryable
from query.http.slots import Slots
from query.http.worker_events import Event, Failed, Items, StartEvents, one_error_group, running

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EVENT_STREAM = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT = b": still here\n\n"
_log = structlog.get_logger(__name__)


class _EventResponse(Response):
    """What both kinds of response share: who runs the generator, and for how long.

    Args:
        start: makes the generator, in the worker thread; it is handed what tells whether the
            client has left.
        runs_on: whether it goes on to its end when the client has left.
    """

    def __init__(self, start: StartEvents, slots: Slots, *, runs_on: bool) -> None:
        super().__init__()
        self._start = start
        self._slots = slots
        self._runs_on = runs_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with running(self._start, self._slots) as items, one_error_group() as group:
            if not self._runs_on:
                group.start_soon(cancel_when_the_client_leaves, receive, group.cancel_scope)
            response = await self._respond(items)
            if isinstance(response, StreamingResponse):
                # Not called as a whole: that would end it when the client leaves, which is ours.
                await response.stream_response(send)
            else:
                await response(scope, receive, send)
            group.cancel_scope.cancel()

    async def _respond(self, items: Items) -> Response:
        raise NotImplementedError


class LiveEvents(_EventResponse):
    """Events as they happen, with a comment every `heartbeat_s` of silence.

    What is raised before the first event is an ordinary HTTP error; later it is an event `error`.
    `encode` puts an event on the wire; one that its clients have no word for becomes nothing.
    """

    def __init__(
        self,
        start: StartEvents,
        slots: Slots,
        *,
        runs_on: bool,
        heartbeat_s: float,
        encode: Callable[[Event], bytes] | None = None,
    ) -> None:
        super().__init__(start, slots, runs_on=runs_on)
        self._heartbeat_s = heartbeat_s
        self._encode = encode or frame

    async def _respond(self, items: Items) -> Response:
        try:
            first = await items.receive()
        except anyio.EndOfStream:
            raise InternalError("no event came of this request") from None
        if isinstance(first, Failed):
            raise first.error
        return StreamingResponse(
            self._frames(first, items), media_type=EVENT_STREAM, headers=_HEADERS
        )

    async def _frames(self, first: Event, items: Items) -> AsyncIterator[bytes]:
        event = first
        yield self._encode(event)
        while True:
            item: Event | Failed | None = None
            try:
                with anyio.move_on_after(self._heartbeat_s):
                    item = await items.receive()
            except anyio.EndOfStream:
                return
            if item is None:
                yield _HEARTBEAT
            elif isinstance(item, Failed):
                yield self._encode(_error_event(item.error, event["seq"] + 1))
                return
            else:
                event = item
                yield self._encode(event)


class FinalEvent(_EventResponse):
    """One response made of the events; `conclude` turns all of them into it."""

    def __init__(
        self,
        start: StartEvents,
        slots: Slots,
        *,
        runs_on: bool,
        conclude: Callable[[Event], Response],
    ) -> None:
        super().__init__(start, slots, runs_on=runs_on)
        self._conclude = conclude

    async def _respond(self, items: Items) -> Response:
        last: Event | None = None
        async for item in items:
            if isinstance(item, Failed):
                raise item.error
            last = item
        if last is None:
            raise InternalError("no event came of this request")
        return self._conclude(last)


async def cancel_when_the_client_leaves(receive: Receive, work: anyio.CancelScope) -> None:
    """Listen beside the work: while nothing is sent, nobody else would notice."""
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


def replayed(events: Iterable[Event]) -> Response:
    """Stored events, then the end."""
    return Response(
        b"".join(frame(event) for event in events), media_type=EVENT_STREAM, headers=_HEADERS
    )


def frame(event: Event) -> bytes:
    """One event on the wire. The data is one line: JSON escapes line breaks."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\nid: {event['seq']}\ndata: {data}\n\n".encode()


def _error_event(error: Exception, seq: int) -> Event:
    if isinstance(error, PinciteError):
        return {
            "type": "error",
            "seq": seq,
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "retryable": is_retryable(error),
        }
    _log.error("http.unexpected", exc_info=error)
    return {
        "type": "error",
        "seq": seq,
        "code": "internal_error",
        "message": "something went wrong on our side",
        "hint": None,
        "retryable": False,
    }
