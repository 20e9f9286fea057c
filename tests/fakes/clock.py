"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """Implements `core.ports.clock.Clock`; may be shared between threads."""

    def __init__(self, start: datetime = START) -> None:
        self._lock = threading.Lock()
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Returns at once; the time has passed."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for a negative span."""
        if seconds < 0:
            raise ValueError("time does not go back; use jump() for a wall clock that is set")
        with self._lock:
            self._now += timedelta(seconds=seconds)
            self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back; no time has passed."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
