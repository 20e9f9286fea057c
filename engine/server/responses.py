"""Answering a request for text: as one object, or as a stream of server-sent events.

While a response is being made, a task of its own waits for the client to leave: that is noticed in
the queue and during prefill, too, when nothing is being written. The engine then gives the
request's blocks back.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from engine.errors import EngineError
from engine.server.errors import as_api_error
from engine.server.running import RunningRequest
from engine.server.shapes import usage_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from starlette.types import Receive, Scope, Send

    from engine.outputs import RequestOutput
    from engine.request import FinishReason
    from engine.server.running import EngineCall
    from engine.server.service import Service
    from engine.server.shapes import Shape

_STREAM_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_HEARTBEAT: Final = b": still here\n\n"
_DONE: Final = b"data: [DONE]\n\n"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to generate, and how to tell it. `arrival_s` is monotonic."""

    calls: Sequence[EngineCall]
    shape: Shape
    is_streamed: bool
    has_usage: bool
    arrival_s: float


class GeneratedResponse(Response):
    """Runs the request when the server calls it. What the engine refuses is raised before anything
    is sent; a stream that breaks later ends with an event that holds an error object."""

    def __init__(self, service: Service, asked: Asked, heartbeat_s: float) -> None:
        super().__init__()
        self._service = service
        self._asked = asked
        self._heartbeat_s = heartbeat_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        running = RunningRequest(self._service, self._asked.arrival_s)
        running.submit(self._asked.calls)
        answering = asyncio.ensure_future(self._answer(running, scope, receive, send))
        leaving = asyncio.ensure_future(_client_left(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            running.close()
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
            scope.setdefault("state", {})["usage"] = running.usage()

    async def _answer(
        self, running: RunningRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if self._asked.is_streamed:
            await self._stream(running, send)
        else:
            whole = await self._collect(running)
            await JSONResponse(whole)(scope, receive, send)

    async def _collect(self, running: RunningRequest) -> dict[str, Any]:
        texts: list[list[str]] = [[] for _ in self._asked.calls]
        reasons: dict[int, FinishReason] = {}
        while not running.is_complete:
            for index, output in await running.next_outputs():
                texts[index].append(output.text)
                if output.finish_reason is not None:
                    reasons[index] = output.finish_reason
        shape = self._asked.shape
        choices = [
            shape.choice(index, "".join(pieces), reasons[index])
            for index, pieces in enumerate(texts)
        ]
        return shape.whole(choices, running.usage())

    async def _stream(self, running: RunningRequest, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        try:
            async for frame in self._frames(running):
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        except Exception as error:  # the edge: the status is sent, so the stream tells it
            if not isinstance(error, EngineError):
                log.exception("engine.stream_failed")
            frame = _event(as_api_error(error).body)
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _frames(self, running: RunningRequest) -> AsyncIterator[bytes]:
        shape = self._asked.shape
        for index in range(len(self._asked.calls)):
            opening = shape.opening(index)
            if opening is not None:
                yield self._piece([opening])
        while not running.is_complete:
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    outputs = await running.next_outputs()
            except TimeoutError:
                yield _HEARTBEAT
                continue
            frames = b"".join(self._piece([choice]) for choice in _deltas(shape, outputs))
            if frames:  # half a character, or what may become a stop string, is kept back
                yield frames
        if self._asked.has_usage:
            # Beyond OpenAI's shape: how long it waited, which a caller cannot measure itself.
            ours = {"queue_ms": round(running.queue_s * 1000, 3)}
            yield self._piece([], usage_object(running.usage()), ours)
        yield _DONE

    def _piece(
        self,
        choices: list[dict[str, Any]],
        usage: dict[str, Any] | None = None,
        ours: dict[str, Any] | None = None,
    ) -> bytes:
        piece = self._asked.shape.piece(choices)
        if ours is not None:
            piece["pincite"] = ours
        if self._asked.has_usage:  # OpenAI: null in all but the last
            piece["usage"] = usage
        return _event(piece)


def _deltas(shape: Shape, outputs: Sequence[tuple[int, RequestOutput]]) -> Iterator[dict[str, Any]]:
    """The pieces of each prompt joined, which are several when the reader was slow."""
    for index in dict.fromkeys(index for index, _ in outputs):
        mine = [output for number, output in outputs if number == index]
        text = "".join(output.text for output in mine)
        if text:
            yield shape.delta(index, text, None)
        if mine[-1].finish_reason is not None:
            yield shape.delta(index, "", mine[-1].finish_reason)


def _event(data: dict[str, Any]) -> bytes:
    """One event on the wire; JSON escapes line breaks, so it is one line."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


async def _client_left(receive: Receive) -> None:
    """Return when the connection is gone. The body was read, so nothing else can come."""
    while (await receive())["type"] != "http.disconnect":
        pass
