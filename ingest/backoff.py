"""How long a part waits after a server did not answer.

The catalog gives the attempt back in that case, so it cannot count these failures; a worker does,
per kind of failure, and forgets them with the first part that succeeds. Full jitter over the upper
half keeps parts from coming back together (as in "Exponential Backoff And Jitter", AWS, 2015)."""

from __future__ import annotations

import random

MAX_DELAY_S = 60.0


class Backoff:
    """Not shared between processes. `rng` is for tests."""

    def __init__(self, base_s: float, *, rng: random.Random | None = None) -> None:
        self._base_s = base_s
        self._rng = rng or random.Random()
        self._failures: dict[str, int] = {}

    def delay_s(self, code: str, *, at_least_s: float = 0.0) -> float:
        """Counts one more failure of that kind; between half of and the whole
        `base * 2^(failures - 1)`, capped at 60 s."""
        failures = self._failures.get(code, 0)
        self._failures[code] = failures + 1
        ceiling = min(MAX_DELAY_S, self._base_s * 2.0 ** min(failures, 30))
        return max(at_least_s, ceiling * self._rng.uniform(0.5, 1.0))

    def reset(self) -> None:
        """Something succeeded."""
        self._failures.clear()
