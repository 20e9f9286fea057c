"""Telling workers that a part waits: a courier, never the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.domain.documents import Queue


@dataclass(frozen=True, slots=True)
class BrokerDepth:
    """`ready` messages nobody took, by queue; `unacked` taken and not finished (None: unknown)."""

    ready: dict[Queue, int]
    unacked: int | None


class JobQueue(Protocol):
    """Raises BrokerUnavailable."""

    def publish(self, queue: Queue, part_id: str) -> None:
        """Announce a part; delivered at least once, maybe late, maybe never (the sweeper heals)."""

    def depth(self) -> BrokerDepth: ...

    def check(self) -> None:
        """Raises SettingsError for a broker that may drop messages when it is full."""
