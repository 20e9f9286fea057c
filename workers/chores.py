"""Things to be done again and again, each at its own pace: a schedule without threads or
sleeping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import PinciteError
from core.logging import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.ports.clock import Clock

_MAX_BACKOFF_S = 60.0
_MIN_BACKOFF_S = 1.0

_log = get_logger(__name__)


@dataclass
class Chore:
    """`run` may return the seconds until it wants to run next, to be sooner or later than `every_s`
    once. Its PinciteErrors are logged and it is tried again, ever less often.

    `max_duty` is the share of the time that it may take: below 1, a chore that takes long (the
    listing of a large bucket) comes round less often than asked for.
    """

    name: str
    every_s: float
    run: Callable[[], float | None]
    max_duty: float = 1.0
    due_at: float = 0.0
    num_failures: int = 0


class Schedule:
    """Runs what is due, one after the other, in one thread."""

    def __init__(self, chores: Sequence[Chore], clock: Clock) -> None:
        self._chores = list(chores)
        self._clock = clock

    def tick(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        """One round over the chores that are due."""
        for chore in self._chores:
            if not may_go_on():
                return
            if self._clock.monotonic() >= chore.due_at:
                self._run(chore)

    def hurry(self, name: str) -> None:
        """Have a chore run in the next round."""
        for chore in self._chores:
            if chore.name == name:
                chore.due_at = 0.0

    def _run(self, chore: Chore) -> None:
        started = self._clock.monotonic()
        try:
            wanted_s = chore.run()
        except PinciteError as error:
            chore.num_failures += 1
            _log.warning(
                "chore.failed",
                chore=chore.name,
                code=error.code,
                error=error.message,
                num_failures=chore.num_failures,
            )
            self._put_off(chore)
        except Exception:  # noqa: BLE001 - the edge: one broken chore must not end the others
            chore.num_failures += 1
            _log.exception("chore.crashed", chore=chore.name, num_failures=chore.num_failures)
            self._put_off(chore)
        else:
            if chore.num_failures:
                _log.info("chore.recovered", chore=chore.name)
                chore.num_failures = 0
            ended = self._clock.monotonic()
            pause_s = chore.every_s if wanted_s is None else wanted_s
            rest_s = (ended - started) * (1 / chore.max_duty - 1)
            chore.due_at = max(started + pause_s, ended + rest_s)

    def _put_off(self, chore: Chore) -> None:
        delay_s = max(_MIN_BACKOFF_S, chore.every_s) * 2.0 ** min(chore.num_failures - 1, 10)
        longest = max(_MAX_BACKOFF_S, chore.every_s)
        chore.due_at = self._clock.monotonic() + min(delay_s, longest)
