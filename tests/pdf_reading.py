"""Reading small, trusted PDFs in the test's own process; hostile ones go through the sandbox."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.domain.pages import ElementKind, Page
from core.settings import ParserSettings
from ingest.layout.compose import Composition, compose, outline_of_page
from ingest.parsing.base import ParseLimits, RawPage
from ingest.parsing.pdf import PdfDocument

LIMITS = ParseLimits.of(ParserSettings())


@contextmanager
def opened(data: bytes, folder: Path, limits: ParseLimits = LIMITS) -> Iterator[PdfDocument]:
    """The file, open. Raises DocumentError as `PdfDocument` does."""
    path = folder / "document.pdf"
    path.write_bytes(data)
    document = PdfDocument(path, limits)
    try:
        yield document
    finally:
        document.close()


def pages_of(data: bytes, folder: Path) -> list[Page]:
    with opened(data, folder) as document:
        facts = document.facts()
        return [
            compose(document.read(number), outline_of_page(facts, number)).page
            for number in range(1, document.page_count + 1)
        ]


def page_of(data: bytes, folder: Path) -> Page:
    """The only page."""
    (page,) = pages_of(data, folder)
    return page


def composed_with_chars(document: PdfDocument, number: int) -> tuple[Composition, RawPage]:
    raw = document.read(number, with_chars=True)
    return compose(raw, outline_of_page(document.facts(), number)), raw


def texts(page: Page, kind: ElementKind | None = None) -> list[str]:
    """The texts of the page's elements, of one kind or all."""
    return [
        page.text[element.start : element.end]
        for element in page.elements
        if kind is None or element.kind is kind
    ]
