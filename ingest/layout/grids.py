"""Tables drawn with rules or cell backgrounds: the grid that the drawn lines make.

Horizontal and vertical edges that touch make one grid. Edges without verticals (rules under each
row, shaded stripes) give the rows; the columns then come from the white space between the cells.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from ingest.layout.fragments import frame_box, on_one_base, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.layout.fragments import Fragment, FragmentSet
    from ingest.parsing.base import Box, RawPage

_MAX_RULE = 3.0  # points: thicker is an area, whose four sides are edges
_MIN_LENGTH = 8.0
_TOUCH = 3.0
_MAX_EDGES = 800
_MAX_LINES = 200  # of one direction in one grid
_MIN_FILLED = 0.3  # of the cells
_TALL = 1.6  # times the usual height of a row


@dataclass(frozen=True, slots=True)
class Edge:
    """A horizontal edge at y=`at` from x=`low` to `high`; a vertical one with x and y swapped."""

    at: float
    low: float
    high: float


_Group = tuple[list[Edge], list[Edge]]  # horizontal and vertical edges that belong together


@dataclass(frozen=True, slots=True)
class Grid:
    """Positions of the lines between (and around) columns and rows, ascending."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]

    @property
    def box(self) -> Box:
        return (self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    def holds(self, fragment: Fragment) -> bool:
        x0, y0, x1, y1 = self.box
        x, y = fragment.box[0] + 1.0, (fragment.box[1] + fragment.box[3]) / 2
        return x0 - _TOUCH <= x <= x1 and y0 <= y <= y1

    def row_of(self, fragment: Fragment) -> int:
        return _band(self.ys, (fragment.box[1] + fragment.box[3]) / 2)

    def column_of(self, fragment: Fragment) -> int:
        middle = (fragment.box[0] + fragment.box[2]) / 2
        # A cell over several columns belongs to the first of them.
        return min(_band(self.xs, middle), _band(self.xs, fragment.box[0] + 2.0))


def find_grids(page: RawPage, found: FragmentSet) -> list[Grid]:
    """Grids of at least two rows, from the top."""
    horizontal, vertical = _edges(page, found)
    if len(horizontal) < 3 or len(horizontal) + len(vertical) > _MAX_EDGES:
        return []
    groups = _side_by_side(_components(horizontal, vertical))
    grids = [_closed_grid(group, found) for group in groups if _has_inner_lines(group)]
    for left, right, ys in _open_groups(groups):
        for rows in _split_at_prose(left, right, ys, found):
            if 3 <= len(rows) <= _MAX_LINES:
                grids.append(_with_white_columns(Grid((left, right), tuple(rows)), found))
    return sorted((grid for grid in grids if grid), key=lambda grid: grid.ys[0])


def _edges(page: RawPage, found: FragmentSet) -> tuple[list[Edge], list[Edge]]:
    horizontal: list[Edge] = []
    vertical: list[Edge] = []
    for shape in page.shapes:
        x0, y0, x1, y1 = frame_box(shape.box, page, found)
        wide, high = x1 - x0, y1 - y0
        if wide > 0.9 * found.width and high > 0.9 * found.height:
            continue  # the page's background
        if high <= _MAX_RULE:
            if wide >= _MIN_LENGTH:
                horizontal.append(Edge((y0 + y1) / 2, x0, x1))
        elif wide <= _MAX_RULE:
            if high >= _MIN_LENGTH:
                vertical.append(Edge((x0 + x1) / 2, y0, y1))
        elif wide >= _MIN_LENGTH and high >= _MIN_LENGTH:
            horizontal += [Edge(y0, x0, x1), Edge(y1, x0, x1)]
            vertical += [Edge(x0, y0, y1), Edge(x1, y0, y1)]
    return _merged(horizontal), _merged(vertical)


def _merged(edges: list[Edge]) -> list[Edge]:
    """Pieces of one line made one."""
    result: list[Edge] = []
    for edge in sorted(edges, key=lambda edge: (round(edge.at / 2), edge.low)):
        last = result[-1] if result else None
        if last and abs(last.at - edge.at) <= 2.0 and edge.low <= last.high + _TOUCH:
            result[-1] = Edge(last.at, last.low, max(last.high, edge.high))
        else:
            result.append(edge)
    return result


def _components(horizontal: list[Edge], vertical: list[Edge]) -> list[_Group]:
    """Edges joined by touching."""
    parent = list(range(len(horizontal) + len(vertical)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for i, line in enumerate(horizontal):
        for j, post in enumerate(vertical):
            if (
                post.low - _TOUCH <= line.at <= post.high + _TOUCH
                and line.low - _TOUCH <= post.at <= line.high + _TOUCH
            ):
                parent[root(i)] = root(len(horizontal) + j)
    groups: dict[int, _Group] = {}
    for i, line in enumerate(horizontal):
        groups.setdefault(root(i), ([], []))[0].append(line)
    for j, post in enumerate(vertical):
        groups.setdefault(root(len(horizontal) + j), ([], []))[1].append(post)
    return list(groups.values())


def _side_by_side(groups: list[_Group]) -> list[_Group]:
    """Groups whose rows are at the same heights made one: cells shaded apart from each other."""
    result: list[_Group] = []
    heights: dict[tuple[int, ...], int] = {}
    for horizontal, vertical in groups:
        ys = tuple(round(y / _TOUCH) for y in _positions([edge.at for edge in horizontal]))
        number = heights.setdefault(ys, len(result)) if len(ys) >= 3 else len(result)
        if number == len(result):
            result.append((list(horizontal), list(vertical)))
        else:
            result[number][0].extend(horizontal)
            result[number][1].extend(vertical)
    return result


def _ends(group: _Group) -> tuple[float, float]:
    horizontal, _ = group
    return min(edge.low for edge in horizontal), max(edge.high for edge in horizontal)


def _has_inner_lines(group: _Group) -> bool:
    horizontal, vertical = group
    if not horizontal:
        return False
    left, right = _ends(group)
    return any(left + _TOUCH < edge.at < right - _TOUCH for edge in vertical)


def _closed_grid(group: _Group, found: FragmentSet) -> Grid | None:
    """The grid of rules in both directions."""
    horizontal, vertical = group
    ys = _positions([edge.at for edge in horizontal])
    xs = _positions([edge.at for edge in vertical])
    if not 3 <= len(ys) <= _MAX_LINES or len(xs) > _MAX_LINES:
        return None
    left, right = _ends(group)
    inside = [x for x in xs if left + _TOUCH < x < right - _TOUCH]
    grid = Grid((left, *inside, right), tuple(ys))
    return grid if _is_filled(grid, found) else None


def _open_groups(groups: list[_Group]) -> list[tuple[float, float, list[float]]]:
    """(left, right, heights) of rules and stripes with the same ends and nothing between them."""
    result: list[tuple[float, float, list[float]]] = []
    for group in groups:
        if not group[0] or _has_inner_lines(group):
            continue
        left, right = _ends(group)
        heights = [edge.at for edge in group[0]]
        for known in result:
            if abs(known[0] - left) <= _TOUCH and abs(known[1] - right) <= _TOUCH:
                known[2].extend(heights)
                break
        else:
            result.append((left, right, heights))
    return [(left, right, _positions(heights)) for left, right, heights in result]


def _split_at_prose(
    left: float, right: float, ys: list[float], found: FragmentSet
) -> list[list[float]]:
    """Runs of heights with rows of a table between them. A line under the page's head, or two
    tables of one width with text between them, are no single table."""
    usual = median(high - low for low, high in pairwise(ys)) if len(ys) > 1 else 0.0
    runs = [ys[:1]]
    for low, high in pairwise(ys):
        inside = _inside(Grid((left, right), (low, high)), found)
        if _is_row(inside, is_tall=high - low > _TALL * usual):
            runs[-1].append(high)
        else:
            runs.append([high])
    return runs


def _is_row(fragments: list[Fragment], *, is_tall: bool) -> bool:
    """Cells beside each other, or one line alone in a band as high as others."""
    if not fragments:
        return not is_tall
    ordered = sorted(fragments, key=lambda fragment: (fragment.base, fragment.box[0]))
    beside = any(
        on_one_base(first, second) and second.box[0] - first.box[2] > first.size
        for first, second in pairwise(ordered)
    )
    is_one_line = all(on_one_base(ordered[0], fragment) for fragment in ordered)
    return beside or (is_one_line and not is_tall)


def _is_filled(grid: Grid, found: FragmentSet) -> bool:
    """Enough of the cells hold text; the rest are frames, charts and drawings."""
    cells = {(grid.row_of(f), grid.column_of(f)) for f in _inside(grid, found)}
    num_columns, num_rows = len(grid.xs) - 1, len(grid.ys) - 1
    with_two = sum(sum(row == r for r, _ in cells) >= 2 for row in range(num_rows))
    return with_two >= 2 and len(cells) >= _MIN_FILLED * num_columns * num_rows


def _with_white_columns(grid: Grid, found: FragmentSet) -> Grid | None:
    """Rows between rules or stripes, parted by white space; None when nothing parts them.

    Rules between rows leave the first and the last row outside: they belong to it when they have
    cells in two of its columns.
    """
    inside = _inside(grid, found)
    xs = whitespace_columns(inside)
    if len(xs) < 3 or len({grid.row_of(fragment) for fragment in inside}) < 2:
        return None
    left, right = grid.xs
    reach = 2.0 * max(fragment.size for fragment in inside)
    top, bottom = grid.ys[0], grid.ys[-1]
    columns = (left, *xs[1:-1], right)
    ys = grid.ys
    for low, high in ((top - reach, top), (bottom, bottom + reach)):
        beside = _inside(Grid((left, right), (low, high)), found)
        if len({_band(columns, fragment.box[0] + 2.0) for fragment in beside}) > 1:
            ys = (low, *ys) if high == top else (*ys, high)
    result = Grid(columns, ys)
    return result if _is_filled(result, found) else None


def _inside(grid: Grid, found: FragmentSet) -> list[Fragment]:
    return [f for f in found.fragments if f.angle == found.angle and grid.holds(f)]


def whitespace_columns(fragments: Sequence[Fragment]) -> tuple[float, ...]:
    """Lines around and between the columns that white space parts: n + 1 for n columns."""
    if not fragments:
        return ()
    x0, _, x1, _ = union([fragment.box for fragment in fragments])
    gap = 0.8 * min(fragment.size for fragment in fragments)
    lines = [x0]
    reach = x0
    for fragment in sorted(fragments, key=lambda fragment: fragment.box[0]):
        if fragment.box[0] - reach > gap:
            lines.append((fragment.box[0] + reach) / 2)
        reach = max(reach, fragment.box[2])
    return (*lines, x1)


def _positions(values: list[float]) -> list[float]:
    """Distinct positions; those closer than a touch are one."""
    result: list[float] = []
    for value in sorted(values):
        if not result or value - result[-1] > _TOUCH:
            result.append(value)
    return result


def _band(lines: Sequence[float], value: float) -> int:
    """Index of the band between two lines that holds `value`, clipped to the outer ones."""
    return min(max(bisect_right(lines, value) - 1, 0), len(lines) - 2)
