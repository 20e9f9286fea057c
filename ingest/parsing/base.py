"""What a file format's reader gives to layout analysis: raw lines, rules and facts of one page.

Coordinates are points of the page as displayed (cropped, rotated), origin at the top left, so that
dividing by `width` and `height` gives the 0..1 rectangles of `core.domain.pages`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from core.domain.pages import Page

if TYPE_CHECKING:
    from core.domain.pages import DocumentFacts, PageOutcome
    from core.settings import ParserSettings

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """The caps of `ParserSettings` that the child itself enforces."""

    max_file_bytes: int
    max_pages: int
    max_page_chars: int
    max_render_pixels: int
    memory_bytes: int
    page_timeout_s: float

    @classmethod
    def of(cls, settings: ParserSettings) -> Self:
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class RawSpan:
    """Glyphs of one style. `chars` has the box of each code point of `text`, when asked for."""

    text: str
    box: Box
    size: float
    is_bold: bool
    hidden: str | None = None  # why nothing of it shows on the page, if so
    chars: tuple[Box, ...] | None = None


@dataclass(slots=True)
class RawLine:
    """Spans along one baseline as the file draws them. `angle` is 0, 90, 180 or 270: where the
    text runs to on the displayed page, clockwise from rightwards. `origin` is a point of the
    baseline. `group` numbers the reader's own grouping of lines."""

    spans: tuple[RawSpan, ...]
    box: Box
    origin: tuple[float, float]
    angle: int
    group: int


@dataclass(slots=True)
class RawShape:
    """A drawn rectangle or straight line: what table rules and cell backgrounds are made of."""

    box: Box
    color: int
    is_filled: bool


@dataclass(frozen=True, slots=True)
class RawPage:
    """`has_picture`: there are pictures or drawings; looked for on a page without text only."""

    number: int
    width: float
    height: float
    rotation: int
    label: str
    lines: tuple[RawLine, ...]
    shapes: tuple[RawShape, ...] = ()
    has_picture: bool = False
    warnings: tuple[str, ...] = ()


class SourceDocument(Protocol):
    """An open file of some format. Methods raise DocumentError for what makes the whole file
    unreadable and PageFault for what spoils one page."""

    @property
    def page_count(self) -> int: ...

    def facts(self) -> DocumentFacts: ...

    def read(self, number: int, *, with_chars: bool = False) -> RawPage:
        """Page `number` (from 1). `with_chars` fills `RawSpan.chars`."""

    def render(self, number: int, width_px: int) -> bytes:
        """PNG of the page as displayed."""

    def warnings(self) -> tuple[str, ...]:
        """What the reading library grumbled about: a few short lines."""

    def close(self) -> None: ...


def failed_page(number: int, outcome: PageOutcome, reason: str) -> Page:
    """A page without text, in the place of one that could not be read."""
    return Page(
        number=number,
        width=0.0,
        height=0.0,
        rotation=0,
        label=str(number),
        text="",
        lines=(),
        elements=(),
        outcome=outcome,
        warnings=(reason,),
    )


class PageFault(Exception):
    """One page cannot be read; the others may be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ParsedRange:
    """The pages asked for that exist, in order and without gaps: what could not be read is there
    with its outcome."""

    facts: DocumentFacts
    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = field(default=())
