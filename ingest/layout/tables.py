"""Tables: rows of cells, from a drawn grid or from cells that stand in line under each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingest.layout.fragments import on_one_base
from ingest.layout.grids import find_grids
from ingest.layout.rows import Row, build_rows, is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.layout.fragments import Fragment, FragmentSet
    from ingest.layout.grids import Grid
    from ingest.parsing.base import RawPage

_ALIGNED = 0.6  # times the font size
_MAX_ROW_GAP = 3.0
_MAX_CONTINUATIONS = 4


@dataclass(slots=True)
class Table:
    """`rows[i][j]` are the printed rows inside one cell; an empty list is an empty cell."""

    rows: list[list[list[Row]]] = field(default_factory=list)

    @property
    def size(self) -> float:
        return next((row.size for cells in self.rows for cell in cells for row in cell), 1.0)


def take_grids(page: RawPage, found: FragmentSet) -> list[list[Fragment] | Table]:
    """The page's fragments with each table of a drawn grid in the place of its first fragment."""
    grids = find_grids(page, found) if page.shapes else []
    if not grids:
        return [found.fragments]
    tables = [Table() for _ in grids]
    contents: list[list[Fragment]] = [[] for _ in grids]
    result: list[list[Fragment] | Table] = [[]]
    for fragment in found.fragments:
        number = _grid_of(fragment, grids, found)
        if number is not None:
            if not contents[number]:
                result += [tables[number], []]
            contents[number].append(fragment)
        elif isinstance(run := result[-1], list):
            run.append(fragment)
    for grid, table, fragments in zip(grids, tables, contents, strict=True):
        table.rows = _grid_rows(grid, fragments)
    return [part for part in result if isinstance(part, Table) or part]


def _grid_of(fragment: Fragment, grids: Sequence[Grid], found: FragmentSet) -> int | None:
    if fragment.angle != found.angle:
        return None
    return next((i for i, grid in enumerate(grids) if grid.holds(fragment)), None)


def take_aligned(rows: Sequence[Row]) -> list[Row | Table]:
    """The rows with each run of rows whose cells stand in line made a table."""
    result: list[Row | Table] = []
    position = 0
    while position < len(rows):
        end = _end_of_table(rows, position)
        if end > position:
            result.append(_aligned_table(rows[position:end]))
            position = end
        else:
            result.append(rows[position])
            position += 1
    return result


def _grid_rows(grid: Grid, fragments: list[Fragment]) -> list[list[list[Row]]]:
    bands: list[list[list[Fragment]]] = [
        [[] for _ in range(len(grid.xs) - 1)] for _ in range(len(grid.ys) - 1)
    ]
    for fragment in fragments:
        bands[grid.row_of(fragment)][grid.column_of(fragment)].append(fragment)
    used = [any(band[column] for band in bands) for column in range(len(grid.xs) - 1)]
    return [
        [build_rows(cell) for cell, is_used in zip(cells, used, strict=True) if is_used]
        for band in bands
        for cells in _split_band(band)
        if any(cells)
    ]


def _split_band(cells: list[list[Fragment]]) -> list[list[list[Fragment]]]:
    """One table row, or the several that a band without rules between them holds.

    The first column tells where rows start, if the others have as many lines as it has: wrapped
    cells side by side seldom do.
    """
    filled = [cell for cell in cells if cell]
    if len(filled) < 2 or not cells[0]:
        return [cells]
    anchors = _bases(cells[0])
    counts = [len(_bases(cell)) for cell in filled[1:]]
    is_numeric = any(all(is_number(fragment.text) for fragment in cell) for cell in filled)
    if (
        len(anchors) < (2 if is_numeric else 3)
        or len(anchors) not in counts
        or sum(count >= len(anchors) for count in counts) * 2 < len(counts)
    ):
        return [cells]
    result: list[list[list[Fragment]]] = [[[] for _ in cells] for _ in anchors]
    for column, cell in enumerate(cells):
        for fragment in cell:
            tolerance = 0.5 * fragment.size
            row = sum(anchor - tolerance <= fragment.base for anchor in anchors) - 1
            result[max(row, 0)][column].append(fragment)
    return result


def _bases(fragments: Sequence[Fragment]) -> list[float]:
    bases: list[float] = []
    previous: Fragment | None = None
    for fragment in sorted(fragments, key=lambda fragment: fragment.base):
        if previous is None or not on_one_base(previous, fragment):
            bases.append(fragment.base)
        previous = fragment
    return bases


def _end_of_table(rows: Sequence[Row], start: int) -> int:
    """One past the last row of the table that starts here; `start` when none does."""
    anchor, last_cells = rows[start], rows[start].cells()
    if len(last_cells) < 2:
        return start
    num_multiple, widest = 1, len(last_cells)
    end = position = start + 1
    num_continuations = 0
    lowest = anchor.base
    while position < len(rows):
        row = rows[position]
        cells = row.cells()
        if _is_beside(row, anchor, last_cells):  # drawn after the second line of a cell
            last_cells = [*last_cells, *cells]
            position += 1
            end = position
            continue
        if row.angle != anchor.angle or not (
            0 < row.base - lowest < _MAX_ROW_GAP * max(row.size, anchor.size)
        ):
            break
        lowest = row.base
        if len(cells) == 1:
            num_continuations += 1
            if num_continuations > _MAX_CONTINUATIONS or not _continues_cell(row, last_cells):
                break
        else:
            if not _in_line(cells, last_cells, row.size):
                break
            num_multiple += 1
            widest = max(widest, len(cells))
            anchor, last_cells, num_continuations = row, cells, 0
        position += 1
        end = position
    enough = num_multiple >= (2 if widest >= 3 else 3)
    return end if enough else start


def _is_beside(row: Row, anchor: Row, cells: list[list[Fragment]]) -> bool:
    """Whether a row stands on the baseline of one above, to the right of all of its cells."""
    return on_one_base(row.fragments[0], anchor.fragments[0]) and (
        row.box[0] > cells[-1][-1].box[2] + 0.5 * row.size
    )


def _in_line(cells: list[list[Fragment]], above: list[list[Fragment]], size: float) -> bool:
    """Whether most cells have an edge or their middle under that of a cell of the row above."""
    tolerance = _ALIGNED * size
    num = 0
    for cell in cells:
        left, right = cell[0].box[0], cell[-1].box[2]
        num += any(
            abs(left - other[0].box[0]) <= tolerance
            or abs(right - other[-1].box[2]) <= tolerance
            or abs(left + right - other[0].box[0] - other[-1].box[2]) <= 2 * tolerance
            for other in above
        )
    return num >= 2 and num * 2 >= min(len(cells), len(above))


def _continues_cell(row: Row, above: list[list[Fragment]]) -> bool:
    """A single piece that starts where a cell above it starts, other than the first."""
    left = row.fragments[0].box[0]
    return any(abs(left - cell[0].box[0]) <= _ALIGNED * row.size for cell in above[1:])


def _aligned_table(rows: Sequence[Row]) -> Table:
    table = Table()
    anchor, lefts = rows[0], [0.0]
    for row in rows:
        cells = row.cells()
        if table.rows and on_one_base(row.fragments[0], anchor.fragments[0]):
            table.rows[-1] += [[Row(cell)] for cell in cells]
            lefts += [cell[0].box[0] for cell in cells]
        elif len(cells) == 1 and table.rows:
            left = row.fragments[0].box[0]
            nearest = min(range(len(lefts)), key=lambda i: abs(lefts[i] - left))
            table.rows[-1][nearest].append(row)
        else:
            table.rows.append([[Row(cell)] for cell in cells])
            anchor, lefts = row, [cell[0].box[0] for cell in cells]
    return table
