"""From the library's page coordinates to those of the page as displayed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ingest.parsing.base import PageFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.parsing.base import Box

_MAX_COORDINATE = 1e6


class Transform:
    """From the library's page coordinates (cropped, not rotated) to the page as displayed."""

    def __init__(self, page: Any) -> None:
        rect = page.rect
        self.width, self.height = float(rect.width), float(rect.height)
        self.rotation = int(page.rotation) % 360
        if not (0 < self.width < _MAX_COORDINATE and 0 < self.height < _MAX_COORDINATE):
            raise PageFault("the page has no area")
        matrix = page.rotation_matrix
        a, b, c, d, e, f = (float(value) for value in matrix)
        x0, y0 = float(rect.x0), float(rect.y0)
        self.box: Callable[[Box], Box]
        self.point: Callable[[float, float], tuple[float, float]]
        if self.rotation == 0 and (x0, y0) == (0, 0):
            self.box = _bounded
            self.point = lambda x, y: (x, y)
        else:
            self.point = lambda x, y: (a * x + c * y + e - x0, b * x + d * y + f - y0)
            self.box = self._turned

    def _turned(self, box: Box) -> Box:
        x0, y0 = self.point(box[0], box[1])
        x1, y1 = self.point(box[2], box[3])
        return _bounded((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))

    def angle(self, direction: tuple[float, float]) -> int:
        if direction == (1.0, 0.0):
            return self.rotation
        turn = round(math.degrees(math.atan2(direction[1], direction[0])) / 90) * 90
        return (turn + self.rotation) % 360


def _bounded(box: Box) -> Box:
    """The box itself, unless a hostile file made it infinite or not a number."""
    most = _MAX_COORDINATE
    x0, y0, x1, y1 = box
    if -most < x0 < most and -most < y0 < most and -most < x1 < most and -most < y1 < most:
        return box
    x0, y0, x1, y1 = (
        min(max(value, -_MAX_COORDINATE), _MAX_COORDINATE) if value == value else 0.0  # noqa: PLR0124
        for value in box
    )
    return (x0, y0, x1, y1)
