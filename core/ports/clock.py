"""Time as a port, so that tests never sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time, timezone-aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; for intervals within one process."""

    def sleep(self, seconds: float) -> None:
        """Wait; a test's clock returns at once."""
