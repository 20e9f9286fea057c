"""Bounded concurrency, kind by kind of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from core.errors import Overloaded

T = TypeVar("T")


class Threads:
    """A pool of worker threads for one kind of blocking work, so that it cannot take those of
    another. Who finds none free waits, and holds nothing meanwhile."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limiter: CapacityLimiter | None = None

    async def run(self, work: Callable[[], T]) -> T:
        if self._limiter is None:  # it belongs to the loop it is made in
            self._limiter = CapacityLimiter(self._limit)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


class Slots(Threads):
    """Threads that nobody waits for: `run` within `take`, which refuses when all are in use. For
    the event loop's thread only."""

    def __init__(self, limit: int, busy_message: str, retry_after_s: float) -> None:
        super().__init__(limit)
        self._busy_message = busy_message
        self._retry_after_s = retry_after_s
        self._num_taken = 0

    @property
    def num_taken(self) -> int:
        return self._num_taken

    @contextmanager
    def take(self) -> Iterator[None]:
        """A slot for as long as the block runs. Raises Overloaded when all are taken."""
        if self._num_taken >= self._limit:
            raise Overloaded(self._busy_message, retry_after_s=self._retry_after_s)
        self._num_taken += 1
        try:
            yield
        finally:
            self._num_taken -= 1
