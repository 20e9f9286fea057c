"""StopMatcher: where a streamed text ends, without ever showing part of a stop string."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopMatcher:
    """The text ends at the stop string that is complete first; of several complete at the same
    character, at the one that began first. That does not depend on how the text was cut into
    pieces. Text that could still become a stop string is held back.

    Args:
        stops: none of them empty.
        include_stop: whether the stop string itself is shown.
    """

    def __init__(self, stops: Sequence[str], include_stop: bool = False) -> None:
        self._stops = tuple(dict.fromkeys(stops))
        self._include_stop = include_stop
        self._held = ""
        self._has_stopped = False

    def push(self, text: str) -> tuple[str, bool]:
        """Take a piece: the text that may be shown now, and whether the text has ended. What comes
        after the end is dropped."""
        if self._has_stopped:
            return "", True
        if not self._stops:
            return text, False
        text = self._held + text
        start, end = self._first_stop(text)
        if end >= 0:
            self._has_stopped = True
            self._held = ""
            return text[: end if self._include_stop else start], True
        num_held = max(_overlap(text, stop) for stop in self._stops)
        shown = text[: len(text) - num_held]
        self._held = text[len(shown) :]
        return shown, False

    def flush(self) -> str:
        """What was held back, when no more text follows."""
        held, self._held = self._held, ""
        return held

    def _first_stop(self, text: str) -> tuple[int, int]:
        """Start and end of the stop string that ends the text; (-1, -1) when there is none."""
        found = []
        for stop in self._stops:
            start = text.find(stop)
            if start >= 0:
                found.append((start + len(stop), start))
        if not found:
            return -1, -1
        end, start = min(found)
        return start, end


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is the beginning of `stop`, but not all of it."""
    position = max(0, len(text) - len(stop) + 1)
    while (position := text.find(stop[0], position)) >= 0:
        if stop.startswith(text[position:]):
            return len(text) - position
        position += 1
    return 0
