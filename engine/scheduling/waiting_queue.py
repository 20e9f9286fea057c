"""WaitingQueue: requests that are not running, in the order in which they should be admitted."""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.request import Request

_RATE_WINDOW = 32
_MIN_RETRY_S = 1.0
_MAX_RETRY_S = 60.0


@dataclass(slots=True, order=True)
class _Place:
    """Orders by priority, then those that ran before, then arrival."""

    priority: int
    is_fresh: bool
    arrival_s: float
    sequence_number: int
    request: Request = field(compare=False)


class WaitingQueue:
    """Priority first (lower runs first); within one, preempted requests stand before those that
    never ran, and the earlier arrival before the later. `num_overtaken` counts how often a later
    request was admitted past one that did not fit."""

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._counter = itertools.count()
        self._num_overtaken: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Request]:
        """A snapshot: requests may leave while it is walked."""
        return iter([place.request for place in self._places])

    def add(self, request: Request) -> None:
        place = _Place(
            request.priority,
            request.status is not RequestStatus.PREEMPTED,
            request.arrival_s,
            next(self._counter),
            request,
        )
        bisect.insort(self._places, place)

    def remove(self, request: Request) -> None:
        """Raises ValueError if it does not wait."""
        index = next((i for i, place in enumerate(self._places) if place.request is request), None)
        if index is None:
            raise ValueError(f"{request.request_id} does not wait")
        del self._places[index]
        self._num_overtaken.pop(request.request_id, None)

    def overtake(self, request: Request) -> None:
        """A later request was admitted past this one."""
        self._num_overtaken[request.request_id] = self.num_overtaken(request) + 1

    def num_overtaken(self, request: Request) -> int:
        return self._num_overtaken.get(request.request_id, 0)


class AdmissionRate:
    """When a place in a full queue should be free, from how fast requests left it lately."""

    def __init__(self) -> None:
        self._admitted_s: deque[float] = deque(maxlen=_RATE_WINDOW)
        self._num_refused = 0

    def admitted(self, now_s: float) -> None:
        self._admitted_s.append(now_s)
        self._num_refused = max(0, self._num_refused - 1)

    def refused(self, now_s: float) -> float:
        """Seconds after which the caller refused now should come back. Callers refused one after
        another are sent to one place each: told the same moment, all but one would be refused
        again. Between 1 and 60; 1 as long as nothing was measured."""
        self._num_refused += 1
        if len(self._admitted_s) < 2:
            return _MIN_RETRY_S
        per_admission_s = (now_s - self._admitted_s[0]) / len(self._admitted_s)
        return min(max(self._num_refused * per_admission_s, _MIN_RETRY_S), _MAX_RETRY_S)
