"""Pages on the pipe between child and parent: compact JSON, checked where it is read.

The child has read a file that strangers made, so the parent takes nothing from it on trust: numbers
are numbers, offsets lie inside the text, rectangles inside the page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from core.domain.pages import (
    DocumentFacts,
    Element,
    ElementKind,
    Line,
    Page,
    PageOutcome,
)

if TYPE_CHECKING:
    from core.domain.pages import Rect

_MAX_WARNINGS = 50
_MAX_WARNING_CHARS = 300


def page_to_wire(page: Page) -> dict[str, Any]:
    """Lines as [start, end, x0, y0, x1, y1], elements as [kind, start, end, level]."""
    return {
        "number": page.number,
        "width": page.width,
        "height": page.height,
        "rotation": page.rotation,
        "label": page.label,
        "text": page.text,
        "lines": [[line.start, line.end, *line.rect] for line in page.lines],
        "elements": [[e.kind.value, e.start, e.end, e.level] for e in page.elements],
        "outcome": page.outcome.value,
        "warnings": list(page.warnings),
    }


def page_from_wire(data: dict[str, Any], *, number: int, max_chars: int) -> Page:
    """The page that was announced as `number`. Raises ValueError for anything impossible."""
    try:
        text = _text(data["text"], 2 * max_chars)
        page = Page(
            number=_whole(data["number"], number, number),
            width=_real(data["width"], 1e7),
            height=_real(data["height"], 1e7),
            rotation=_whole(data["rotation"], 0, 359),
            label=_text(data["label"], 100),
            text=text,
            lines=tuple(_line(item, len(text)) for item in data["lines"]),
            elements=tuple(_element(item, len(text)) for item in data["elements"]),
            outcome=PageOutcome(data["outcome"]),
            warnings=_warnings(data["warnings"]),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError("not a page") from error
    return page


def facts_to_wire(facts: DocumentFacts) -> dict[str, Any]:
    return {
        "page_count": facts.page_count,
        "title": facts.title,
        "language": facts.language,
        "outline": [list(entry) for entry in facts.outline],
        "metadata": facts.metadata,
        "warnings": list(facts.warnings),
    }


def facts_from_wire(data: dict[str, Any], *, max_pages: int) -> DocumentFacts:
    """Raises ValueError for anything impossible."""
    try:
        page_count = _whole(data["page_count"], 1, max_pages)
        return DocumentFacts(
            page_count=page_count,
            title=None if data["title"] is None else _text(data["title"], 4_000),
            language=None if data["language"] is None else _text(data["language"], 100),
            outline=tuple(
                (_whole(level, 1, 1_000), _text(title, 1_000), _whole(page, 1, page_count))
                for level, title, page in data["outline"]
            ),
            metadata={
                _text(key, 100): _text(value, 4_000) for key, value in data["metadata"].items()
            },
            warnings=_warnings(data["warnings"]),
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("not the facts of a document") from error


def _line(item: list[Any], length: int) -> Line:
    start, end, *rect = item
    start = _whole(start, 0, length)
    return Line(start, _whole(end, start, length), _rect(rect))


def _rect(values: list[Any]) -> Rect:
    x0, y0, x1, y1 = (_real(value, 1.0) for value in values)
    if x0 > x1 or y0 > y1:
        raise ValueError("a rectangle turned inside out")
    return (x0, y0, x1, y1)


def _element(item: list[Any], length: int) -> Element:
    kind, start, end, level = item
    start = _whole(start, 0, length)
    return Element(ElementKind(kind), start, _whole(end, start, length), _whole(level, 0, 9))


def _whole(value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError("a whole number out of range")
    return value


def _real(value: object, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    if not (math.isfinite(value) and 0 <= value <= high):
        raise ValueError("a number out of range")
    return float(value)


def _text(value: object, max_chars: int) -> str:
    if not isinstance(value, str) or len(value) > max_chars or "\0" in value:
        raise ValueError("not a text, or too long")
    return value


def _warnings(value: list[Any]) -> tuple[str, ...]:
    return tuple(_text(item, _MAX_WARNING_CHARS) for item in value[:_MAX_WARNINGS])
