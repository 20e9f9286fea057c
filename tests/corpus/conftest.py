"""One parser for the whole corpus, as a worker has one, and what becomes of a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.domain.pages import Page
from core.errors import PinciteError
from core.settings import ParserSettings
from ingest.outcomes import why_no_text
from ingest.parsing.sandbox import Parser

PAGES_PER_PART = 32


@dataclass(frozen=True)
class Result:
    """`code` is `text`, or that of the error that the document gets."""

    code: str
    pages: tuple[Page, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(page.text for page in self.pages)


Read = Callable[[Path], Result]


@pytest.fixture(scope="session")
def parser() -> Iterator[Parser]:
    with Parser(ParserSettings()) as made:
        yield made


@pytest.fixture(scope="session")
def read(parser: Parser) -> Read:
    """A file's pages, part by part, and the verdict on it."""

    def run(path: Path) -> Result:
        pages: list[Page] = []
        first, page_count = 1, 1
        try:
            while first <= page_count:
                parsed = parser.parse(path, first, first + PAGES_PER_PART - 1)
                pages += parsed.pages
                page_count = parsed.facts.page_count
                first += PAGES_PER_PART
        except PinciteError as error:
            return Result(error.code)
        assert [page.number for page in pages] == list(range(1, page_count + 1))
        if not any(page.text.strip() for page in pages):
            return Result(why_no_text(pages).code, tuple(pages))
        return Result("text", tuple(pages))

    return run
