"""From the asynchronous generator to the thread that makes an answer.

All generations of a process are read in one event loop of its own thread; the thread that waits for
one looks every 50 ms whether anybody still wants it, so that a client who leaves frees the
generator at once, also before the first token.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import TypeAlias

from anyio.from_thread import BlockingPortal, start_blocking_portal

from core.domain.generation import (
    ChatMessage,
    GenerationEnd,
    GenerationEvent,
    GenerationRequest,
)
from core.errors import GeneratorUnavailable, InvalidInput
from core.ports.generator import Generator

__all__ = ["Abandoned", "GenerationLoop", "PrefixLengths"]

_POLL_S = 0.05
_CLOSE_S = 5.0  # a connection that does not close in this time is left to the loop


class Abandoned(Exception):
    """Nobody wants the answer any more."""


class _Closed:
    """The generation was read to its end, or given up."""


_Item: TypeAlias = GenerationEvent | Exception | _Closed


class GenerationLoop:
    """The event loop; its thread is started by the first generation. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal | None = None

    @contextmanager
    def reading(
        self, generator: Generator, request: GenerationRequest, is_cancelled: Callable[[], bool]
    ) -> Iterator[Iterator[GenerationEvent]]:
        """The events of one generation. Leaving the block ends it, whether it is complete or not.

        Iterating raises what `Generator.stream` does, and Abandoned once `is_cancelled` says so.
        """
        items: queue.SimpleQueue[_Item] = queue.SimpleQueue()

        async def pump() -> None:
            try:
                await _pump(generator.stream(request), items)
            finally:
                items.put(_Closed())

        reading = self._open().start_task_soon(pump)
        try:
            yield _events(items, is_cancelled)
        finally:
            reading.cancel()
            _await_close(items)

    def close(self) -> None:
        """End the loop and every generation in it."""
        with self._lock:
            running, portal = self._running, self._portal
            self._running = self._portal = None
        if running is not None and portal is not None:
            portal.call(portal.stop, True)
            running.__exit__(None, None, None)

    def _open(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                self._running = start_blocking_portal(name="generations")
                self._portal = self._running.__enter__()
            return self._portal


async def _pump(stream: AsyncIterator[GenerationEvent], items: queue.SimpleQueue[_Item]) -> None:
    try:
        async with aclosing(stream) as events:  # type: ignore[type-var]
            async for event in events:
                items.put(event)
    except Exception as error:  # noqa: BLE001 - an edge: raised again in the thread that reads
        items.put(error)


def _events(
    items: queue.SimpleQueue[_Item], is_cancelled: Callable[[], bool]
) -> Iterator[GenerationEvent]:
    """Until the generation's end, which must come."""
    while True:
        if is_cancelled():
            raise Abandoned
        try:
            item = items.get(timeout=_POLL_S)
        except queue.Empty:
            continue
        if isinstance(item, _Closed):
            items.put(item)
            raise GeneratorUnavailable("the generator's answer ended before it was complete")
        if isinstance(item, Exception):
            raise item
        yield item
        if isinstance(item, GenerationEnd):
            return


def _await_close(items: queue.SimpleQueue[_Item]) -> None:
    try:
        while not isinstance(items.get(timeout=_CLOSE_S), _Closed):
            pass
    except queue.Empty:
        pass


class PrefixLengths:
    """How many tokens the constant prefix has, asked once of each generator. Safe in threads.

    Counted alone it is as long as inside a prompt wherever a chat template renders message by
    message; where one does not, a few tokens less are shared, or none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lengths: dict[str, int] = {}

    def of(self, generator: Generator, prefix: Sequence[ChatMessage]) -> int:
        """Raises what `Generator.count_tokens` does, but InvalidInput."""
        fingerprint = generator.info().fingerprint
        with self._lock:
            known = self._lengths.get(fingerprint)
        if known is not None:
            return known
        try:
            length = generator.count_tokens(prefix, opens_answer=False)
        except InvalidInput:
            length = 0
        with self._lock:
            self._lengths[fingerprint] = length
        return length
