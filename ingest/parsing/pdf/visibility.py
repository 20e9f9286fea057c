"""What of a page can be seen: hidden text would be found, quoted and obeyed without being read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ingest.parsing.pdf.library import pymupdf

if TYPE_CHECKING:
    from ingest.parsing.base import Box
    from ingest.parsing.pdf.geometry import Transform

_NEARLY_WHITE = 0xF0
_MIN_CONTRAST = 16
_PROOF_PX = 600
_OCR_PICTURE_SHARE = 0.5


class Proof:
    """A small grey picture of the page, to see whether a white or invisible text can be seen.

    Fills, gradients and pictures behind a text are too many cases to reason about one by one.
    Invisible text over a picture of the page is an OCR layer, and kept.
    """

    def __init__(self, page: Any, transform: Transform) -> None:
        self._zoom = _PROOF_PX / max(transform.width, transform.height)
        picture = page.get_pixmap(
            matrix=pymupdf.Matrix(self._zoom, self._zoom), colorspace=pymupdf.csGRAY, alpha=False
        )
        self._width, self._height, self._stride = picture.width, picture.height, picture.stride
        self._samples = bytes(picture.samples)
        self._is_scan = _picture_share(page, transform) >= _OCR_PICTURE_SHARE

    def why_hidden(self, span: dict[str, Any], box: Box) -> str | None:
        """None for a span that can be seen or is a scan's text; `box` as displayed."""
        is_invisible = span["alpha"] == 0
        if not _is_suspect(span) or (is_invisible and self._is_scan) or self._shows(box):
            return None
        return "invisible" if is_invisible else "white on white"

    def _shows(self, box: Box) -> bool:
        """Whether there is anything but one colour inside `box`."""
        x0, y0, x1, y1 = (value * self._zoom for value in box)
        left, right = max(0, math.floor(x0)), min(self._width, math.ceil(x1))
        darkest, lightest = 255, 0
        for row in range(max(0, math.floor(y0)), min(self._height, math.ceil(y1))):
            start = row * self._stride
            samples = self._samples[start + left : start + right]
            if samples:
                darkest, lightest = min(darkest, *samples), max(lightest, *samples)
        return lightest - darkest > _MIN_CONTRAST


def is_white(color: int) -> bool:
    return all((color >> shift) & 0xFF > _NEARLY_WHITE for shift in (0, 8, 16))


def _is_suspect(span: dict[str, Any]) -> bool:
    return span["alpha"] == 0 or is_white(span["color"])


def has_suspect_text(found: list[dict[str, Any]]) -> bool:
    return any(
        _is_suspect(span)
        for part in found
        if part["type"] == 0
        for line in part["lines"]
        for span in line["spans"]
    )


def _picture_share(page: Any, transform: Transform) -> float:
    """How much of the page its pictures cover."""
    area = 0.0
    for image in page.get_image_info():
        x0, y0, x1, y1 = transform.box(image["bbox"])
        wide = min(x1, transform.width) - max(x0, 0.0)
        high = min(y1, transform.height) - max(y0, 0.0)
        area += max(0.0, wide) * max(0.0, high)
    return area / (transform.width * transform.height)
