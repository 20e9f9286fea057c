"""The elements of a document in reading order, each with the headings it stands under."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from core.domain.pages import ElementKind
from ingest.layout.paragraphs import text_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.domain.pages import Page

Piece: TypeAlias = tuple[int, int, int]  # page number, start, end

_HARD_LEVEL = 2  # chunks never cross a heading of this level or above
_MAX_HEADING_CHARS = 100  # longer ones say too little per token to stand before other text
_CELL_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class Unit:
    """`text` is that of `piece`. `path` are the headings above, outermost first, with its own for a
    heading. `header` is the first row of a table that goes on from the page before, and
    `header_text` its text."""

    kind: ElementKind
    piece: Piece
    text: str
    path: tuple[str, ...]
    level: int = 0
    header: Piece | None = None
    header_text: str = ""

    @property
    def is_heading(self) -> bool:
        return self.kind is ElementKind.HEADING

    @property
    def is_table(self) -> bool:
        return self.kind is ElementKind.TABLE


def sections(pages: Sequence[Page]) -> Iterator[list[Unit]]:
    """Units in reading order, parted before each heading of level 1 or 2 that has text above it."""
    section: list[Unit] = []
    for unit in _with_headers(list(_units(pages))):
        starts = unit.is_heading and unit.level <= _HARD_LEVEL
        if starts and any(not other.is_heading for other in section):
            yield section
            section = []
        section.append(unit)
    if section:
        yield section


def _units(pages: Sequence[Page]) -> Iterator[Unit]:
    path: list[tuple[int, str]] = []
    for page in pages:
        for element in page.elements:
            text = page.text[element.start : element.end]
            if element.kind is ElementKind.FURNITURE or not text.strip():
                continue
            if element.kind is ElementKind.HEADING:
                while path and path[-1][0] >= element.level:
                    path.pop()
                heading = " ".join(text.split())
                is_new = text_key(heading) not in {text_key(above) for _, above in path}
                if is_new and len(heading) <= _MAX_HEADING_CHARS:
                    path.append((element.level, heading))
            yield Unit(
                kind=element.kind,
                piece=(page.number, element.start, element.end),
                text=text,
                path=tuple(heading for _, heading in path),
                level=element.level,
            )


def _with_headers(units: list[Unit]) -> Iterator[Unit]:
    """Tables that go on from the page before get that table's header row."""
    previous: Unit | None = None
    for unit in units:
        found = unit
        if previous is not None and _goes_on(previous, unit):
            header = previous.header or first_row(previous)
            header_text = previous.header_text or previous.text.partition("\n")[0]
            if text_key(header_text) != text_key(unit.text.partition("\n")[0]):
                found = replace(unit, header=header, header_text=header_text)
        yield found
        previous = found


def _goes_on(previous: Unit, unit: Unit) -> bool:
    return (
        previous.is_table
        and unit.is_table
        and unit.piece[0] == previous.piece[0] + 1
        and _num_columns(previous) == _num_columns(unit) > 1
    )


def first_row(unit: Unit) -> Piece:
    page, start, _ = unit.piece
    return (page, start, start + len(unit.text.partition("\n")[0]))


def _num_columns(unit: Unit) -> int:
    counts = [row.count(_CELL_SEPARATOR.strip()) + 1 for row in unit.text.split("\n")]
    return max(set(counts), key=counts.count)
