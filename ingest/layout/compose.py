"""A raw page to a `Page`: reading order, paragraphs, tables, text with exact offsets.

The page's text is made of the printed lines' own characters and of what we put between them: a
space inside a paragraph (nothing where a hyphen parts a word), " | " between the cells of a table
row, a newline between rows and between list items, an empty line between elements.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.domain.pages import Element, ElementKind, Line, Page, PageOutcome
from ingest.layout.columns import split_columns
from ingest.layout.fragments import make_fragments, to_rect, union
from ingest.layout.headings import PageStyle, classify
from ingest.layout.joining import join_of
from ingest.layout.paragraphs import group_paragraphs, text_key
from ingest.layout.readable import SUSPECT_SHARE, is_shifted, measure
from ingest.layout.rows import Row, build_rows, has_gap
from ingest.layout.tables import Table, take_aligned, take_grids
from ingest.normalize import ends_with_soft_hyphen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.domain.pages import DocumentFacts, Rect
    from ingest.layout.fragments import Fragment, FragmentSet
    from ingest.layout.paragraphs import Paragraph
    from ingest.parsing.base import Box, RawPage

CELL_SEPARATOR = " | "
_ELEMENT_SEPARATOR = "\n\n"
_SIGNS_BEFORE = frozenset({"$", "€", "£", "¥", "US$", "USD", "EUR", "CHF", "("})
_SIGNS_AFTER = frozenset({"%", ")", ")%"})
_NUMBER_STARTS = frozenset("0123456789.,(-–—−")


@dataclass(frozen=True, slots=True)
class Printed:
    """`text[start:end]` is the text of `fragment`, from its first character."""

    start: int
    end: int
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class Composition:
    """A page, and which fragment each of its characters was printed by."""

    page: Page
    printed: tuple[Printed, ...]

    def word_rects(self, start: int, end: int, raw: RawPage) -> tuple[Rect, ...]:
        """One rectangle a printed line, around exactly the characters of `text[start:end]`.

        `raw` is the page as it was read, with the boxes of its characters (ValueError without).
        """
        boxes_of_line: dict[int, list[Box]] = {}
        starts = [line.start for line in self.page.lines]
        for item in self.printed:
            low, high = max(start, item.start), min(end, item.end)
            if low >= high:
                continue
            chars = item.fragment.char_boxes()
            line = bisect_right(starts, item.start) - 1
            for place in range(low - item.start, high - item.start):
                if not item.fragment.text[place].isspace():
                    box = chars[item.fragment.normal.origin(place)]
                    boxes_of_line.setdefault(line, []).append(box)
        return tuple(to_rect(union(boxes), raw) for _, boxes in sorted(boxes_of_line.items()))


def outline_of_page(facts: DocumentFacts, number: int) -> dict[str, int]:
    """`text_key` of the outline titles that point to a page -> level."""
    found: dict[str, int] = {}
    for level, title, page in facts.outline:
        key = text_key(title)
        if page == number and key:
            found.setdefault(key, level)
    return found


def compose(raw: RawPage, outline: Mapping[str, int] | None = None) -> Composition:
    """Lay out one page. Depends on nothing but the page and the outline's titles on it."""
    found = make_fragments(raw)
    warnings = list(raw.warnings)
    warnings += [f"hidden text left out: {reason}" for reason in sorted(found.hidden)]
    if found.num_dropped:
        warnings.append("unprintable characters left out")
    outcome = _outcome(raw, found, warnings)
    text = _Text()
    if outcome is PageOutcome.OK:
        _write(text, _arrange(raw, found, outline or {}), outline or {})
    page = Page(
        number=raw.number,
        width=round(raw.width, 2),
        height=round(raw.height, 2),
        rotation=raw.rotation,
        label=raw.label,
        text="".join(text.parts),
        lines=tuple(text.lines),
        elements=tuple(text.elements),
        outcome=outcome,
        warnings=tuple(warnings),
    )
    return Composition(page, tuple(text.printed))


def _outcome(raw: RawPage, found: FragmentSet, warnings: list[str]) -> PageOutcome:
    readability = measure(found.raws)
    if readability.is_garbage or is_shifted(found.raws):
        warnings.append("the characters cannot be read: the font does not say what they are")
        return PageOutcome.GARBAGE
    if not found.fragments:
        return PageOutcome.IMAGE_ONLY if raw.has_picture else PageOutcome.EMPTY
    if readability.bad_share > SUSPECT_SHARE:
        warnings.append(f"{readability.bad_share:.0%} of the characters cannot be read")
    return PageOutcome.OK


def _arrange(
    raw: RawPage, found: FragmentSet, outline: Mapping[str, int]
) -> list[Paragraph | Table]:
    """Paragraphs and tables in reading order."""
    parts: list[Row | Table] = []
    for part in take_grids(raw, found):
        if isinstance(part, Table):
            parts.append(part)
        else:
            parts += take_aligned(split_columns(build_rows(part)))
    return group_paragraphs(parts, frozenset(outline))


def _write(text: _Text, parts: Sequence[Paragraph | Table], outline: Mapping[str, int]) -> None:
    style = PageStyle.of([row for part in parts for row in _rows_of(part)])
    words = _PageWords(parts)
    for part in parts:
        if isinstance(part, Table):
            text.begin(is_list=False)
            _write_table(text, part, words)
            text.close(ElementKind.TABLE, 0)
        else:
            plain = " ".join(row.text for row in part.rows)
            kind, level = classify(part, plain, style, outline)
            text.begin(is_list=kind is ElementKind.LIST_ITEM)
            text.add_rows(part.rows, words)
            text.close(kind, level)


def _write_table(text: _Text, table: Table, words: _PageWords) -> None:
    for number, cells in enumerate(table.rows):
        if number:
            text.add("\n")
        last = max(column for column, cell in enumerate(cells) if cell)
        previous: Sequence[Row] = ()
        for column, cell in enumerate(cells[: last + 1]):
            if column:
                text.add(_separator(previous, cell))
            text.add_rows(cell, words)
            previous = cell


def _separator(previous: Sequence[Row], cell: Sequence[Row]) -> str:
    """Between two cells: a bar, but for a sign that is printed apart from its number."""
    if not previous:
        return CELL_SEPARATOR[1:]
    before = previous[-1].text if len(previous) == 1 else ""
    after = cell[0].text if len(cell) == 1 else ""
    is_sign_before = before in _SIGNS_BEFORE and after[:1] in _NUMBER_STARTS
    is_sign_after = after in _SIGNS_AFTER and before[-1:].isdigit()
    return " " if is_sign_before or is_sign_after else CELL_SEPARATOR


def _rows_of(part: Paragraph | Table) -> Iterable[Row]:
    if isinstance(part, Table):
        return [row for cells in part.rows for cell in cells for row in cell]
    return part.rows


class _PageWords:
    """The words of the page, collected when the first hyphen at a line's end asks for them."""

    def __init__(self, parts: Sequence[Paragraph | Table]) -> None:
        self._parts = parts
        self._words: frozenset[str] | None = None

    def __contains__(self, word: object) -> bool:
        if self._words is None:
            self._words = frozenset(
                token.strip(".,;:!?()[]\"'“”‘’«»").casefold()
                for part in self._parts
                for row in _rows_of(part)
                for token in row.text.split()
            )
        return isinstance(word, str) and word.casefold() in self._words


class _Text:
    """The page's text as it grows. Every `add` keeps `length` right; lines never overlap."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.lines: list[Line] = []
        self.elements: list[Element] = []
        self.printed: list[Printed] = []
        self._start = 0
        self._was_list = False

    def add(self, piece: str) -> None:
        self.parts.append(piece)
        self.length += len(piece)

    def begin(self, *, is_list: bool) -> None:
        if self.elements:
            self.add("\n" if is_list and self._was_list else _ELEMENT_SEPARATOR)
        self._start = self.length
        self._was_list = is_list

    def close(self, kind: ElementKind, level: int) -> None:
        self.elements.append(Element(kind, self._start, self.length, level))

    def add_rows(self, rows: Sequence[Row], words: _PageWords) -> None:
        """Printed rows of one running text."""
        for number, row in enumerate(rows):
            following = rows[number + 1] if number + 1 < len(rows) else None
            num_cut, separator = join_of(row.text, following.text if following else "", words)
            self._add_row(row, num_cut)
            self.add(separator)

    def _add_row(self, row: Row, num_cut: int) -> None:
        """One printed row, without its last `num_cut` characters."""
        start = self.length
        for number, fragment in enumerate(row.fragments):
            if number and has_gap(row.fragments[number - 1], fragment):
                self.add(" ")
            text = fragment.text
            if num_cut and number == len(row.fragments) - 1:
                text = text[:-num_cut]
            elif ends_with_soft_hyphen(text):
                text = text[:-1]
            if text:
                self.printed.append(Printed(self.length, self.length + len(text), fragment))
                self.add(text)
        if self.length > start:
            self.lines.append(Line(start, self.length, _rect_of(row)))


def _rect_of(row: Row) -> Rect:
    if len(row.fragments) == 1:
        return row.fragments[0].rect
    return union([fragment.rect for fragment in row.fragments])
