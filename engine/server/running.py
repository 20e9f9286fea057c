"""One HTTP request's generations, between the engine's thread and the event loop.

The engine's thread only stamps an output and hands it over; it never waits for a reader. A reader
that is slow finds several outputs at once; there are never more than the request's own tokens.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineStopped, QueueFull
from engine.metrics import FinishedRequest
from engine.outputs import RequestUsage
from engine.request import FinishReason
from engine.server.errors import ApiError, stopping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.outputs import RequestOutput
    from engine.sampling_params import SamplingParams
    from engine.server.service import Service

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineCall:
    """One prompt for the engine."""

    prompt_token_ids: list[int]
    sampling: SamplingParams
    salt: bytes
    num_shared_prefix_tokens: int = 0


@dataclass(slots=True, eq=False)
class _Generation:
    """One prompt's way through the engine, seen from the loop."""

    request_id: str
    usage: RequestUsage
    has_token: bool = False
    is_over: bool = False


class RunningRequest:
    """Submit, read with `next_outputs` until `is_complete`, and `close` in any case.

    Args:
        service: whose engine and metrics.
        arrival_s: monotonic; when the API was called.
    """

    def __init__(self, service: Service, arrival_s: float) -> None:
        self._service = service
        self._engine = service.require().engine
        self._arrival_s = arrival_s
        self._loop = asyncio.get_running_loop()
        self._generations: list[_Generation] = []
        self._outputs: deque[tuple[int, RequestOutput]] = deque()
        self._changed = asyncio.Event()
        self._error: ApiError | None = None
        self._is_closed = False
        self.queue_s = 0.0  # that the slowest prompt waited, once it has ended

    def submit(self, calls: Sequence[EngineCall]) -> None:
        """Give the engine all prompts, or none. Raises what the engine raises."""
        self._service.running.add(self)
        try:
            for index, call in enumerate(calls):
                self._submit_one(index, call)
        except BaseException as error:
            self.close()
            if isinstance(error, QueueFull):
                self._service.metrics.record_rejection()
            elif isinstance(error, EngineStopped):
                self._service.check_engine()
            raise

    @property
    def is_complete(self) -> bool:
        """Whether every generation has ended and been read."""
        return not self._outputs and all(g.is_over for g in self._generations)

    def usage(self) -> RequestUsage:
        """Of all prompts together, as of what has come."""
        parts = [generation.usage for generation in self._generations]
        return RequestUsage(
            num_prompt_tokens=sum(part.num_prompt_tokens for part in parts),
            num_cached_tokens=sum(part.num_cached_tokens for part in parts),
            num_completion_tokens=sum(part.num_completion_tokens for part in parts),
        )

    async def next_outputs(self) -> list[tuple[int, RequestOutput]]:
        """What has come since the last call, with the number of its prompt; waits for something.

        Raises ApiError when the engine failed or stops.
        """
        while not self._outputs and self._error is None:
            self._changed.clear()
            await self._changed.wait()
        if self._error is not None:
            raise self._error
        found = list(self._outputs)
        self._outputs.clear()
        return found

    def fail(self, error: ApiError) -> None:
        """Let the reader raise this; the engine forgets the request."""
        self._error = self._error or error
        self._changed.set()
        self._abort()

    def close(self) -> None:
        """Nobody reads any more: what still runs is aborted."""
        self._is_closed = True
        self._service.running.discard(self)
        self._abort()

    def _submit_one(self, index: int, call: EngineCall) -> None:
        def receive(output: RequestOutput) -> None:
            stamp = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._take, index, output, stamp)
            except RuntimeError:  # the loop is closed: the server is gone
                return

        request_id = self._engine.submit(
            call.prompt_token_ids,
            call.sampling,
            receive,
            salt=call.salt,
            num_shared_prefix_tokens=call.num_shared_prefix_tokens,
        )
        usage = RequestUsage(len(call.prompt_token_ids), 0, 0)
        self._generations.append(_Generation(request_id, usage))

    def _take(self, index: int, output: RequestOutput, stamp: float) -> None:
        """One output, in the loop. An aborted request's are counted, but nobody reads them."""
        generation = self._generations[index]
        generation.usage = output.usage
        self._record(generation, output, stamp)
        if output.finish_reason is not None:
            generation.is_over = True
        if output.timings is not None:
            self.queue_s = max(self.queue_s, output.timings.queue_s or 0.0)
        if self._is_closed or self._error is not None:
            return
        if output.finish_reason in (FinishReason.ERROR, FinishReason.ABORT):
            self.fail(_failure(output))
            return
        self._outputs.append((index, output))
        self._changed.set()

    def _record(self, generation: _Generation, output: RequestOutput, stamp: float) -> None:
        metrics = self._service.metrics
        usage = output.usage
        if output.token_ids:
            metrics.record_tokens(len(output.token_ids))
            if not generation.has_token:
                generation.has_token = True
                metrics.record_first_token(stamp - self._arrival_s, usage.num_prompt_tokens)
        if output.finish_reason is not None:
            metrics.record_end(
                FinishedRequest(
                    output.finish_reason,
                    usage.num_prompt_tokens,
                    usage.num_completion_tokens,
                    stamp - self._arrival_s,
                    output.timings,
                )
            )

    def _abort(self) -> None:
        for generation in self._generations:
            if not generation.is_over:
                self._engine.abort(generation.request_id)


def _failure(output: RequestOutput) -> ApiError:
    if output.finish_reason is FinishReason.ABORT:  # not by us: the engine is closing
        return stopping()
    # its text is of an exception: for the log, not for the client
    log.error("engine.request_failed", extra={"facts": {"reason": output.error[:300]}})
    return ApiError(500, "the engine failed on this request", code="engine_error")
