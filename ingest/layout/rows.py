"""Fragments to printed rows: what stands on one baseline, in the order in which the file draws it.

The file's own order is kept: it is right for most born-digital files, while sorting by height mixes
columns. Only what is certain is repaired: a list number drawn apart from its line goes back to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingest.layout.fragments import on_one_base, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.layout.fragments import Fragment
    from ingest.parsing.base import Box

# Numbers, letters and bullets at the start of a list item, or alone on a baseline.
MARKER = re.compile(
    r"(?:[•◦▪‣●○■□◆➢➤❖·*–—-]"
    r"|\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[a-zA-Z]|[ivxIVX]{2,5})[.)]"
    r"|\d{1,2}(?:\.\d{1,2}){1,4}"
    r"|§+ ?\d+[a-z]?)(?=\s|$)"
)
_CELL_GAP = 1.0  # times the font size
_NUMBER_GAP = 0.4  # numbers seldom stand beside each other but in tables
_MARKER_GAP = 8.0
_WORD_GAP = 0.12  # MuPDF's own threshold is 0.15
_LOOK_AHEAD = 40


@dataclass(slots=True)
class Row:
    """Fragments on one baseline, from left to right in the reading frame."""

    fragments: list[Fragment]
    box: Box = (0.0, 0.0, 0.0, 0.0)
    size: float = 1.0
    is_bold: bool = False
    text: str = field(default="")

    def __post_init__(self) -> None:
        self.update()

    def update(self) -> None:
        """Recompute what depends on the fragments."""
        first = self.fragments[0]
        if len(self.fragments) == 1:
            self.box, self.size, self.is_bold = first.box, first.size, first.is_bold
            self.text = first.text
            return
        self.box = union([fragment.box for fragment in self.fragments])
        self.size = max(self.fragments, key=lambda fragment: len(fragment.text)).size
        self.is_bold = all(fragment.is_bold for fragment in self.fragments)
        parts = [first.text]
        for left, right in zip(self.fragments, self.fragments[1:], strict=False):
            parts += [" " if has_gap(left, right) else "", right.text]
        self.text = "".join(parts)

    @property
    def base(self) -> float:
        return self.fragments[0].base

    @property
    def angle(self) -> int:
        return self.fragments[0].angle

    def cells(self) -> list[list[Fragment]]:
        """Fragments apart by more than a word gap; a list marker stays with its text."""
        cells = [[self.fragments[0]]]
        for left, right in zip(self.fragments, self.fragments[1:], strict=False):
            gap = right.box[0] - left.box[2]
            after_marker = left is self.fragments[0] and self._starts_with_marker()
            least = _NUMBER_GAP if is_number(left.text) and is_number(right.text) else _CELL_GAP
            if gap > least * self.size and not (after_marker and gap < _MARKER_GAP * self.size):
                cells.append([right])
            else:
                cells[-1].append(right)
        return cells

    def _starts_with_marker(self) -> bool:
        first = self.fragments[0].text
        if MARKER.fullmatch(first):
            return True
        # A bare number is one only before running text: it may as well be a table's first column.
        return (
            first.isdigit() and len(first) <= 2 and len(self.fragments) == 2 and len(self.text) > 18
        )


def build_rows(fragments: Sequence[Fragment]) -> list[Row]:
    """Rows in the order of the file."""
    groups: list[list[Fragment]] = []
    for fragment in fragments:
        if groups and _continues(groups[-1][-1], fragment):
            groups[-1].append(fragment)
        else:
            groups.append([fragment])
    return _attach_markers([Row(group) for group in groups])


def has_gap(left: Fragment, right: Fragment) -> bool:
    """Whether a space stands between two fragments of one row."""
    if left.raw[-1:].isspace() or right.raw[:1].isspace():
        return True
    return right.box[0] - left.box[2] > _WORD_GAP * min(left.size, right.size)


def is_number(text: str) -> bool:
    """Digits and signs, without a letter."""
    return any(char.isdigit() for char in text) and not any(char.isalpha() for char in text)


def _continues(left: Fragment, right: Fragment) -> bool:
    if left.angle != right.angle:
        return False
    gap = right.box[0] - left.box[2]
    if on_one_base(left, right):  # an exponent may stand above an index
        return gap > -1.2 * min(left.size, right.size)
    if gap < -0.5 * min(left.size, right.size):
        return False
    # A raised or lowered small piece directly at the other's end.
    smaller, larger = sorted((left, right), key=lambda fragment: fragment.size)
    overlap = min(left.box[3], right.box[3]) - max(left.box[1], right.box[1])
    return (
        smaller.size < 0.85 * larger.size
        and gap < 0.5 * larger.size
        and overlap > 0.5 * (smaller.box[3] - smaller.box[1])
    )


def _attach_markers(rows: list[Row]) -> list[Row]:
    """A marker alone in its row goes in front of the row on the same baseline, if one follows."""
    kept: list[Row] = []
    for position, row in enumerate(rows):
        if len(row.text) <= 10 and (MARKER.fullmatch(row.text) or row.text.isdigit()):
            target = _row_beside(row, rows[position + 1 : position + 1 + _LOOK_AHEAD])
            if target is not None:
                target.fragments = row.fragments + target.fragments
                target.update()
                continue
        kept.append(row)
    return kept


def _row_beside(marker: Row, candidates: Sequence[Row]) -> Row | None:
    for row in candidates:
        if row.angle == marker.angle and on_one_base(row.fragments[0], marker.fragments[-1]):
            gap = row.box[0] - marker.box[2]
            if 0 < gap < _MARKER_GAP * marker.size:
                return row
    return None
