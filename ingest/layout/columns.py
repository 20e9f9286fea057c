"""Columns of running text that a file draws line by line across, put one after the other.

Most files draw a column whole, and then there is nothing to do. Where rows have two or three long
cells on either side of a gutter that no row crosses, they are columns and not a table.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from ingest.layout.rows import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.layout.fragments import Fragment

_MIN_ROWS = 4
_MIN_CELL_CHARS = 22
_MIN_FILL = 0.6  # of the column's width, by the median cell
_MIN_LETTERS = 0.6
_MAX_SINGLE = 3  # rows in a run where only one column has text
_MAX_ROW_GAP = 3.0  # times the font size


def split_columns(rows: Sequence[Row]) -> list[Row]:
    """Rows with interleaved columns taken apart; all others as they are."""
    result: list[Row] = []
    start = 0
    while start < len(rows):
        end = _end_of_run(rows, start)
        gutters = _gutters(rows[start:end]) if end - start >= _MIN_ROWS else []
        result += _column_by_column(rows[start:end], gutters) if gutters else rows[start:end]
        start = end
    return result


def _end_of_run(rows: Sequence[Row], start: int) -> int:
    """One past the rows that go down the page one under the other, most with several cells."""
    end = start + 1
    if len(rows[start].cells()) < 2:
        return end
    for position in range(end, len(rows)):
        row, above = rows[position], rows[position - 1]
        if not 0 < row.base - above.base < _MAX_ROW_GAP * max(row.size, above.size):
            break
        if len(row.cells()) > 1:
            end = position + 1
        elif position - end >= _MAX_SINGLE:
            break
    return end


def _gutters(rows: Sequence[Row]) -> list[float]:
    """Where columns part, or nothing when these rows are not columns of running text."""
    multiple = [row.cells() for row in rows if len(row.cells()) > 1]
    num_columns = max(len(cells) for cells in multiple)
    full = [cells for cells in multiple if len(cells) == num_columns]
    if num_columns > 3 or len(full) < _MIN_ROWS or len(full) * 2 < len(rows):
        return []
    gutters: list[float] = []
    for column in range(num_columns):
        texts = [" ".join(fragment.text for fragment in cells[column]) for cells in full]
        if not _is_prose(texts):
            return []
        left = min(cells[column][0].box[0] for cells in full)
        right = max(cells[column][-1].box[2] for cells in full)
        widths = [cells[column][-1].box[2] - cells[column][0].box[0] for cells in full]
        if median(widths) < _MIN_FILL * (right - left):
            return []
        if column:
            if left <= gutters[-1]:
                return []
            gutters[-1] = (gutters[-1] + left) / 2
        gutters.append(right)
    gutters.pop()
    crossing = sum(_crosses(row, gutters) for row in rows)
    return gutters if crossing == 0 else []


def _is_prose(texts: Sequence[str]) -> bool:
    joined = "".join(texts)
    letters = sum(char.isalpha() for char in joined)
    return len(joined) >= _MIN_CELL_CHARS * len(texts) and letters >= _MIN_LETTERS * len(joined)


def _crosses(row: Row, gutters: Sequence[float]) -> bool:
    return any(
        fragment.box[0] < gutter < fragment.box[2]
        for fragment in row.fragments
        for gutter in gutters
    )


def _column_by_column(rows: Sequence[Row], gutters: Sequence[float]) -> list[Row]:
    columns: list[list[Row]] = [[] for _ in range(len(gutters) + 1)]
    for row in rows:
        parts: list[list[Fragment]] = [[] for _ in columns]
        for fragment in row.fragments:
            parts[sum(fragment.box[0] > gutter for gutter in gutters)].append(fragment)
        for column, part in zip(columns, parts, strict=True):
            if part:
                column.append(Row(part))
    return [row for column in columns for row in column]
