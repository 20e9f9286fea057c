"""Running heads and folios are found; lines that only look alike are not."""

import pytest

from core.domain.pages import Element, ElementKind, Line, Page, PageOutcome
from ingest.layout.furniture import mark_furniture

Lines = list[tuple[float, str]]


def page(number: int, lines: Lines) -> Page:
    """Each line one element, at a height from the top (0..1)."""
    text, places, elements = "", [], []
    for top, line in lines:
        start = len(text)
        text += line
        places.append(Line(start, len(text), (0.1, top, 0.9, top + 0.015)))
        elements.append(Element(ElementKind.PARAGRAPH, start, len(text)))
        text += "\n\n"
    return Page(
        number, 595, 842, 0, str(number), text, tuple(places), tuple(elements), PageOutcome.OK
    )


def furniture(pages: list[Page]) -> list[list[str]]:
    return [
        [
            found.text[element.start : element.end]
            for element in found.elements
            if element.kind is ElementKind.FURNITURE
        ]
        for found in mark_furniture(pages)
    ]


def test_heads_and_folios_that_count_with_the_pages_are_marked() -> None:
    pages = [
        page(n, [(0.03, "Manual 2026"), (0.5, f"Body {n * n}"), (0.95, f"Page {n + 2} of 9")])
        for n in range(1, 6)
    ]
    assert furniture(pages) == [["Manual 2026", f"Page {n + 2} of 9"] for n in range(1, 6)]


def test_roman_folios_are_marked() -> None:
    romans = ["i", "ii", "iii", "iv", "v"]
    pages = [page(n, [(0.5, "Body"), (0.95, romans[n - 1])]) for n in range(1, 6)]
    assert furniture(pages) == [[roman] for roman in romans]


@pytest.mark.parametrize("top", [0.04, 0.95])
def test_numbers_that_do_not_count_pages_are_body(top: float) -> None:
    values = [93, 12, 407, 55, 8]
    pages = [
        page(n, [(top, f"Pump P{n:03d} was measured at {values[n - 1]} litres"), (0.5, "Body")])
        for n in range(1, 6)
    ]
    assert furniture(pages) == [[]] * 5


def test_invoices_bound_together_keep_their_numbers() -> None:
    pages = [
        page(n, [(0.05, "Invoice no. 88417"), (0.1, f"Due {n * 3} June"), (0.5, "Body")])
        for n in (1, 2, 4, 5, 7)
    ]
    assert furniture(pages) == [["Invoice no. 88417"]] * 5


def test_a_page_is_never_emptied() -> None:
    pages = [page(n, [(0.05, "Only a title")]) for n in range(1, 6)]
    assert furniture(pages) == [[]] * 5
