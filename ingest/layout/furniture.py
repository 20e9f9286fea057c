"""Running heads, footers and page numbers: what stands at the same place on most pages.

Found by repetition alone, over the whole document: the same text at the same height of the upper
or lower band on at least three pages and half of those it spans. Numbers in it must be the same
too, or count with the pages: what is measured, billed or dated anew on each page is no page number.
Marked, never deleted, never a table, and never all of a page: fixed margins and guesses lose title
lines and last table rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import regex

from core.domain.pages import ElementKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.domain.pages import Page

_BAND = 0.15  # of the page's height, at either end
_SAME_HEIGHT = 0.012
_MIN_PAGES = 3
_MIN_SHARE = 0.5
_MAX_CHARS = 200
_DIGITS = regex.compile(r"\d+|\b[ivxlc]{1,6}\b")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class _Place:
    """An element that may be furniture: where it stands, from the top of its page (0..1)."""

    page: int
    element: int
    height: float
    numbers: tuple[int, ...]


def mark_furniture(pages: Sequence[Page]) -> list[Page]:
    """The pages with repeated heads and feet as `ElementKind.FURNITURE`; text and order stay."""
    groups: dict[tuple[str, bool], list[_Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        for key, place in _candidates(index, page):
            groups[key].append(place)
    numbers = [page.number for page in pages]
    marked: dict[int, set[int]] = defaultdict(set)
    for places in groups.values():
        for cluster in _at_one_height(places):
            for repeated in _counted_alike(cluster, numbers):
                if _repeats(sorted({place.page for place in repeated}), numbers):
                    for place in repeated:
                        marked[place.page].add(place.element)
    return [
        _with_furniture(page, marked[index])
        if index in marked and len(marked[index]) < len(page.elements)
        else page
        for index, page in enumerate(pages)
    ]


def _candidates(index: int, page: Page) -> Iterable[tuple[tuple[str, bool], _Place]]:
    """((text without numbers, is in the upper band), place)."""
    for number, element in enumerate(page.elements):
        if element.kind is ElementKind.TABLE or element.end - element.start > _MAX_CHARS:
            continue
        rects = page.rects(element.start, element.end)
        if not rects:
            continue
        top, bottom = min(rect[1] for rect in rects), max(rect[3] for rect in rects)
        if bottom <= _BAND or top >= 1 - _BAND:
            text = page.text[element.start : element.end].casefold()
            found = tuple(_value(match) for match in _DIGITS.findall(text))
            key = (_DIGITS.sub("#", text), bottom <= _BAND)
            yield key, _Place(index, number, top, found)


def _value(number: str) -> int:
    """What a page number of digits or small roman numerals counts."""
    if number.isdecimal():
        return int(number[:18])
    values = [_ROMAN[letter] for letter in number]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def _counted_alike(cluster: list[_Place], numbers: Sequence[int]) -> Iterable[list[_Place]]:
    """Places whose numbers are all equal, or all at the same distance from their page's number."""
    alike: dict[tuple[tuple[str, int], ...], list[_Place]] = defaultdict(list)
    steady = [len({place.numbers[i] for place in cluster}) == 1 for i in range(_width(cluster))]
    for place in cluster:
        facts = tuple(
            ("same", value) if is_steady else ("counts", value - numbers[place.page])
            for value, is_steady in zip(place.numbers, steady, strict=True)
        )
        alike[facts].append(place)
    return alike.values()


def _width(cluster: list[_Place]) -> int:
    return len(cluster[0].numbers)


def _at_one_height(places: list[_Place]) -> Iterable[list[_Place]]:
    """Places whose heights are close to each other."""
    cluster: list[_Place] = []
    for place in sorted(places, key=lambda place: place.height):
        if cluster and place.height - cluster[-1].height > _SAME_HEIGHT:
            yield cluster
            cluster = []
        cluster.append(place)
    if cluster:
        yield cluster


def _repeats(indexes: list[int], numbers: Sequence[int]) -> bool:
    """Often enough among the pages from its first to its last one; left and right pages may have
    heads of their own, so one of two is enough."""
    if len(indexes) < _MIN_PAGES:
        return False
    span = numbers[indexes[-1]] - numbers[indexes[0]] + 1
    return len(indexes) >= _MIN_SHARE * (span - 1)


def _with_furniture(page: Page, marked: set[int]) -> Page:
    elements = tuple(
        replace(element, kind=ElementKind.FURNITURE, level=0) if number in marked else element
        for number, element in enumerate(page.elements)
    )
    return replace(page, elements=elements)
