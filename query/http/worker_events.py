"""A synchronous generator in a worker thread, its events read in the event loop.

The thread never waits for the client: what a slow reader has not taken yet is buffered (an answer
is small), so that the generator's resources are held for as long as the work takes and no longer.
When the reader leaves, the generator is closed at its next event, in its own thread. One that waits
long for its next event asks meanwhile whether the reader is still there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from query.http.slots import Slots

Event: TypeAlias = dict[str, Any]  # JSON: type, seq, and what it tells
HasLeft: TypeAlias = Callable[[], bool]  # whether nobody reads any more; for any thread
StartEvents: TypeAlias = Callable[[HasLeft], Generator[Event, None, None]]


# The reader has left; or the loop has ended, when the server stops.
_NOBODY_READS = (anyio.BrokenResourceError, anyio.RunFinishedError)


@dataclass(frozen=True, slots=True)
class Failed:
    """The generator raised."""

    error: Exception


Item: TypeAlias = Event | Failed
Items: TypeAlias = MemoryObjectReceiveStream[Item]


@asynccontextmanager
async def running(start: StartEvents, slots: Slots) -> AsyncIterator[Items]:
    """Run the generator that `start` makes; within the block its events can be received, in order,
    then an end.

    Leaving the block closes the generator and waits until it is closed. Raises Overloaded.
    """
    left = threading.Event()
    with slots.take():
        sender, receiver = anyio.create_memory_object_stream[Item](math.inf)
        async with one_error_group() as group:

            async def work() -> None:
                with sender:
                    await slots.run(lambda: _pump(start, left.is_set, sender))

            group.start_soon(work)
            try:
                with receiver:
                    yield receiver
            finally:
                left.set()


@asynccontextmanager
async def one_error_group() -> AsyncIterator[TaskGroup]:
    """A task group that raises a single error as it is, not wrapped, so that it can be handled."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__


def _pump(start: StartEvents, has_left: HasLeft, sender: MemoryObjectSendStream[Item]) -> None:
    def send(item: Item) -> None:
        anyio.from_thread.run_sync(sender.send_nowait, item)

    try:
        with closing(start(has_left)) as events:
            for event in events:
                send(event)
    except _NOBODY_READS:
        pass
    except Exception as error:  # noqa: BLE001 - the edge: it is raised again where it is read
        with suppress(*_NOBODY_READS):
            send(Failed(error))
