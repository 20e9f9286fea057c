"""Running heads, footers and page numbers: what stands at the same place on most pages.

Found by repetition alone, over the whole document: the same text (digits counted as equal) at the
same height of the upper or lower band on at least three pages and half of those it spans. Marked,
never deleted, and never a table: fixed margins and guesses lose title lines and last table rows.
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


@dataclass(frozen=True, slots=True)
class _Place:
    """An element that may be furniture: where it stands, from the top of its page (0..1)."""

    page: int
    element: int
    height: float


def mark_furniture(pages: Sequence[Page]) -> list[Page]:
    """The pages with repeated heads and feet as `ElementKind.FURNITURE`; text and order stay."""
    groups: dict[tuple[str, bool], list[_Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        for number, key, height in _candidates(page):
            groups[key].append(_Place(index, number, height))
    numbers = [page.number for page in pages]
    marked: dict[int, set[int]] = defaultdict(set)
    for places in groups.values():
        for cluster in _at_one_height(places):
            if _repeats(sorted({place.page for place in cluster}), numbers):
                for place in cluster:
                    marked[place.page].add(place.element)
    return [
        _with_furniture(page, marked[index]) if index in marked else page
        for index, page in enumerate(pages)
    ]


def _candidates(page: Page) -> Iterable[tuple[int, tuple[str, bool], float]]:
    """(element number, (text without digits, is in the upper band), height)."""
    for number, element in enumerate(page.elements):
        if element.kind is ElementKind.TABLE or element.end - element.start > _MAX_CHARS:
            continue
        rects = page.rects(element.start, element.end)
        if not rects:
            continue
        top, bottom = min(rect[1] for rect in rects), max(rect[3] for rect in rects)
        if bottom <= _BAND or top >= 1 - _BAND:
            text = _DIGITS.sub("#", page.text[element.start : element.end].casefold())
            yield number, (text, bottom <= _BAND), top


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
