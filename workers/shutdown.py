"""Bytes shared between a worker's main process and its pool children: who is busy, and must it
stop.

Celery lets a running task finish for a while when it is told to stop, but has no way to tell the
task. A page of memory that children inherit needs no lock and no thread: each byte has one writer.
"""

from __future__ import annotations

import mmap

_STOP = 0
_FIRST_CHILD = 1


class SharedFlags:
    """Made before the pool forks. `slot` is a child's place in the pool, from 0."""

    def __init__(self, num_children: int) -> None:
        self._num_children = num_children
        self._memory = mmap.mmap(-1, _FIRST_CHILD + num_children)

    def request_stop(self) -> None:
        self._memory[_STOP] = 1

    @property
    def must_stop(self) -> bool:
        return bool(self._memory[_STOP])

    def set_busy(self, slot: int, *, is_busy: bool) -> None:
        self._memory[_FIRST_CHILD + slot % self._num_children] = int(is_busy)

    @property
    def is_any_busy(self) -> bool:
        return any(self._memory[_FIRST_CHILD : _FIRST_CHILD + self._num_children])
