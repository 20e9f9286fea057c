"""Heading levels over the whole document: a page alone cannot know how large its text usually is.

A cover's address may stand out on its own page and still be no heading of the document. Sizes are
told by the heights of the printed lines. The outline, where there is one, goes before sizes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from core.domain.pages import Element, ElementKind
from ingest.layout.headings import BOLD_LEVEL, MAX_LEVEL, level_of
from ingest.layout.paragraphs import text_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.domain.pages import DocumentFacts, Page

_STEP = 0.25  # points, in which heights are counted
_SMALLER = 0.93  # times the running text: too small for a heading
_MIN_BODY_CHARS = 400


def settle_levels(pages: Sequence[Page], facts: DocumentFacts) -> list[Page]:
    """The pages with their headings' levels made comparable; what is set smaller than the running
    text of the document becomes a paragraph. Texts and order stay."""
    body = _body_height(pages)
    outline = {(page, text_key(title)): level for level, title, page in facts.outline}
    result: list[Page] = []
    outline_level = 0
    for page in pages:
        elements: list[Element] = []
        for element in page.elements:
            if element.kind is not ElementKind.HEADING:
                elements.append(element)
                continue
            text = page.text[element.start : element.end]
            known = outline.get((page.number, text_key(text)))
            if known is not None:
                outline_level = min(known, MAX_LEVEL)
                elements.append(replace(element, level=outline_level))
                continue
            settled = _settled(element, text, _ratio(page, element, body))
            if settled.kind is ElementKind.HEADING and outline_level:
                deeper = min(max(settled.level, outline_level + 1), MAX_LEVEL)
                settled = replace(settled, level=deeper)
            elements.append(settled)
        result.append(replace(page, elements=tuple(elements)))
    return result


def _settled(element: Element, text: str, ratio: float | None) -> Element:
    if ratio is None:
        return element
    if ratio < _SMALLER:
        return replace(element, kind=ElementKind.PARAGRAPH, level=0)
    return replace(element, level=level_of(text, ratio) or BOLD_LEVEL)


def _body_height(pages: Sequence[Page]) -> float | None:
    """The height of most lines of running text in points; None when there is hardly any."""
    weights: Counter[int] = Counter()
    for page in pages:
        bodies = [e for e in page.elements if e.kind is not ElementKind.HEADING]
        starts = sorted((body.start, body.end) for body in bodies)
        position = 0
        for line in page.lines:
            while position < len(starts) and starts[position][1] <= line.start:
                position += 1
            if position < len(starts) and starts[position][0] <= line.start:
                weights[round(_height(page, line.rect) / _STEP)] += line.end - line.start
    if weights.total() < _MIN_BODY_CHARS:
        return None
    return max(weights.most_common(1)[0][0], 1) * _STEP


def _ratio(page: Page, element: Element, body: float | None) -> float | None:
    rects = page.rects(element.start, element.end)
    if body is None or not rects:
        return None
    return median(_height(page, rect) for rect in rects) / body


def _height(page: Page, rect: tuple[float, float, float, float]) -> float:
    """Of a printed line in points: the shorter side, since the page may be turned."""
    return min((rect[3] - rect[1]) * page.height, (rect[2] - rect[0]) * page.width)
