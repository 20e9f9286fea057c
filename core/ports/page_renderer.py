"""Pictures of pages and exact rectangles, made outside the calling process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.domain.access import Principal
    from core.domain.documents import ActiveVersion
    from core.domain.pages import Rect


class PageRenderer(Protocol):
    """No document is ever opened in the caller's process. Raises NotFound for a page outside the
    document, Gone when the bytes are no longer kept, Overloaded, TimedOut, ParserFailure."""

    def page_png(
        self, principal: Principal, version: ActiveVersion, page: int, *, width_px: int
    ) -> bytes:
        """The page as displayed (cropped, rotated), `width_px` wide, as PNG; cached."""

    def word_rects(
        self, principal: Principal, version: ActiveVersion, page: int, start: int, end: int
    ) -> tuple[Rect, ...]:
        """Rectangles, one a printed line, that cover exactly the words of `text[start:end]`."""
