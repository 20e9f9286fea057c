"""Bounded concurrency: who finds no free slot is told to come back, and does not wait in a queue
that hides the overload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from core.errors import Overloaded

T = TypeVar("T")


class Slots:
    """For the event loop's thread only. `limit` pieces of work at once, each in a worker thread."""

    def __init__(self, limit: int, busy_message: str, retry_after_s: float) -> None:
        self._limit = limit
        self._busy_message = busy_message
        self._retry_after_s = retry_after_s
        self._num_taken = 0
        self._threads: CapacityLimiter | None = None

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

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread of this pool; within `take`, so that one is free."""
        if self._threads is None:  # a limiter belongs to the loop it is made in
            self._threads = CapacityLimiter(self._limit)
        return await anyio.to_thread.run_sync(work, limiter=self._threads)
