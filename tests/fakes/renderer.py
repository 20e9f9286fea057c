"""Page pictures without a PDF library: white paper, a grey bar for each printed line."""

import struct
import zlib

from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import ActiveVersion
from core.domain.pages import Page, Rect
from core.errors import InvalidInput, NotFound, Overloaded

_WHITE, _INK = 255, 150


class FakePageRenderer:
    """Implements `core.ports.page_renderer.PageRenderer` over the stored pages.

    `is_busy`: every call raises Overloaded. `calls`: what was asked for.
    """

    def __init__(self, artifacts: Artifacts) -> None:
        self.is_busy = False
        self.calls: list[tuple[str, int, int]] = []
        self._artifacts = artifacts

    def page_png(
        self, principal: Principal, version: ActiveVersion, page: int, *, width_px: int
    ) -> bytes:
        found = self._page(principal, version, page)
        self.calls.append((version.sha256, page, width_px))
        height_px = round(width_px * found.height / found.width)
        rows = [bytearray([_WHITE]) * width_px for _ in range(height_px)]
        for line in found.lines:
            x0, y0, x1, y1 = line.rect
            left, right = int(x0 * width_px), int(x1 * width_px)
            for row in rows[int(y0 * height_px) : int(y1 * height_px)]:
                row[left:right] = bytes([_INK]) * (right - left)
        return _png(width_px, height_px, rows)

    def word_rects(
        self, principal: Principal, version: ActiveVersion, page: int, start: int, end: int
    ) -> tuple[Rect, ...]:
        found = self._page(principal, version, page)
        if end > len(found.text):
            raise InvalidInput("that range lies outside the page's text")
        rects = []
        for line in found.lines:
            low, high = max(start, line.start), min(end, line.end)
            if low < high:  # letters of equal width
                x0, y0, x1, y1 = line.rect
                step = (x1 - x0) / (line.end - line.start)
                left, right = x0 + step * (low - line.start), x0 + step * (high - line.start)
                rects.append((left, y0, right, y1))
        return tuple(rects)

    def _page(self, principal: Principal, version: ActiveVersion, page: int) -> Page:
        if self.is_busy:
            raise Overloaded("all renderers are busy", retry_after_s=3)
        pages = self._artifacts.read_pages(
            principal, version.sha256, version.parser_fingerprint, [page]
        )
        if page not in pages:
            raise NotFound("there is no such page")
        return pages[page]


def _png(width: int, height: int, rows: list[bytearray]) -> bytes:
    """An 8 bit grey picture (PNG, RFC 2083)."""

    def section(name: bytes, body: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + section(b"IHDR", header)
        + section(b"IDAT", pixels)
        + section(b"IEND", b"")
    )
