"""A few quick retries inside one call, for a server that restarts or a connection that broke.

Anything longer belongs to the catalog (a part's `not_before`): no call here waits for more than
about a second, and no policy retries what the server refused or may have done twice with another
result.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")

QUICK_DELAYS_S: tuple[float, ...] = (0.1, 0.5)
_JITTER = 0.25


def with_retries(
    call: Callable[[], _T],
    *,
    should_retry: Callable[[Exception], bool],
    delays_s: Sequence[float] = QUICK_DELAYS_S,
    sleep: Callable[[float], None] = time.sleep,
    random_unit: Callable[[], float] = random.random,
) -> _T:
    """The result of `call`, tried once more after each of `delays_s` (two quick ones by default).

    Args:
        call: must be safe to run again after any error that `should_retry` accepts.
        should_retry: judges each error; what it refuses is raised at once.
        delays_s: seconds before each further try, each varied by a quarter, so that many callers
            do not come back together.
        sleep, random_unit: replaced in tests.

    Raises the last error of `call`.
    """
    for delay_s in delays_s:
        try:
            return call()
        except Exception as error:
            if not should_retry(error):
                raise
            sleep(delay_s * (1 + _JITTER * (2 * random_unit() - 1)))
    return call()
