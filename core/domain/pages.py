"""Pages, elements and chunks: text with the way back to the page.

All offsets are Unicode code points, half-open, in a page's normalised text. Pages count from 1.
Rectangles are (x0, y0, x1, y1), 0..1 of the page as displayed (after crop and rotation, origin at
the top left).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Rect: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line: `page.text[start:end]` and where it stands."""

    start: int
    end: int
    rect: Rect


class ElementKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CAPTION = "caption"
    FURNITURE = "furniture"  # running heads, folios: kept as metadata, not chunked


@dataclass(frozen=True, slots=True)
class Element:
    """A layout unit: `page.text[start:end]`. `level` is 1.. for headings, 0 otherwise."""

    kind: ElementKind
    start: int
    end: int
    level: int = 0


class PageOutcome(StrEnum):
    OK = "ok"
    EMPTY = "empty"  # no text and no image: a blank page
    IMAGE_ONLY = "image_only"  # pictures but no text: needs OCR
    GARBAGE = "garbage"  # text that maps to no readable characters: needs OCR
    TIMED_OUT = "timed_out"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Page:
    """One parsed page. `width`/`height` are points as displayed; `label` is the printed number."""

    number: int
    width: float
    height: float
    rotation: int
    label: str
    text: str
    lines: tuple[Line, ...]
    elements: tuple[Element, ...]
    outcome: PageOutcome
    warnings: tuple[str, ...] = ()

    def rects(self, start: int, end: int) -> tuple[Rect, ...]:
        """Rectangles of the printed lines that `text[start:end]` touches, in reading order."""
        return tuple(line.rect for line in self.lines if line.start < end and line.end > start)


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What a parser learns of the whole file. `outline` is (level, title, page) in order."""

    page_count: int
    title: str | None
    language: str | None
    outline: tuple[tuple[int, str, int], ...]
    metadata: dict[str, str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """`chunk.text[chunk_start:chunk_end]` is the stored text of `page` at `[start, end)`."""

    page: int
    start: int
    end: int
    chunk_start: int
    chunk_end: int


@dataclass(frozen=True, slots=True)
class Location:
    """Where a quote stands. `rects` is empty only when the page geometry is unknown."""

    page: int
    start: int
    end: int
    rects: tuple[Rect, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The stored retrieval unit. Only `text` is shown and cited.

    `heading_path` (outermost first) and the document's title are prefixed to what is embedded and
    indexed (`index_text`), and kept apart from the cited text.
    """

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    index_text: str
    spans: tuple[SourceSpan, ...]
    language: str
    num_tokens: int
    is_table: bool = False

    @property
    def pages(self) -> tuple[int, ...]:
        return tuple(sorted({span.page for span in self.spans}))

    def locate(self, start: int, end: int) -> tuple[SourceSpan, ...]:
        """The page spans under `text[start:end]`, clipped to it."""
        found: list[SourceSpan] = []
        for span in self.spans:
            low, high = max(start, span.chunk_start), min(end, span.chunk_end)
            if low < high:
                page_start = span.start + (low - span.chunk_start)
                found.append(SourceSpan(span.page, page_start, page_start + high - low, low, high))
        return tuple(found)


def text_of(spans: Sequence[SourceSpan], pages: dict[int, Page]) -> str:
    """What the stored pages say under `spans`, joined by newlines: the verbatim quote.

    Raises KeyError for a page that is not given, ValueError for a span outside its page.
    """
    pieces: list[str] = []
    for span in spans:
        text = pages[span.page].text
        if not 0 <= span.start < span.end <= len(text):
            raise ValueError(f"span {span.start}-{span.end} is outside page {span.page}")
        pieces.append(text[span.start : span.end])
    return "\n".join(pieces)
