"""A parser of a make-believe format, so that the pipeline's tests say what each file does.

Pages are separated by form feeds, lines by newlines. A page that is `!<outcome>` has that outcome
and no text. A file that begins with `!<code>` raises the error of that code."""

from collections.abc import Callable
from pathlib import Path

from core.domain.pages import DocumentFacts, Element, ElementKind, Line, Page, PageOutcome
from core.errors import (
    CorruptDocument,
    DocumentError,
    NeedsPassword,
    ParserCrashed,
    ParserFailure,
    ParserOutOfMemory,
    UnsupportedDocument,
)
from ingest.parsing.base import ParsedRange

_FATAL: dict[str, type[DocumentError | ParserFailure]] = {
    "password": NeedsPassword,
    "corrupt": CorruptDocument,
    "unsupported": UnsupportedDocument,
    "crash": ParserCrashed,
    "memory": ParserOutOfMemory,
}


class FakeParser:
    """Implements `ingest.part_run.PageParser`. `on_parse` is called with each range, and may
    raise."""

    def __init__(self) -> None:
        self.parsed: list[int] = []
        self.on_parse: Callable[[int, int], None] = lambda _first, _last: None

    def parse(
        self, path: Path, first: int, last: int, on_page: Callable[[Page], None] | None = None
    ) -> ParsedRange:
        text = path.read_text(encoding="utf-8")
        self.on_parse(first, last)
        for name, error in _FATAL.items():
            if text.startswith(f"!{name}"):
                raise error(f"the file says {name}")
        texts = text.split("\f")
        title = texts[0].split("\n")[0] if texts[0].startswith("# ") else None
        pages = []
        for number in range(first, min(last, len(texts)) + 1):
            page = _page(number, texts[number - 1])
            self.parsed.append(number)
            pages.append(page)
            if on_page is not None:
                on_page(page)
        facts = DocumentFacts(len(texts), title and title.removeprefix("# "), "en", (), {})
        return ParsedRange(facts, tuple(pages))


def _page(number: int, text: str) -> Page:
    outcome = PageOutcome.OK if text.strip() else PageOutcome.EMPTY
    if text.startswith("!"):
        outcome, text = PageOutcome(text.removeprefix("!")), ""
    lines = []
    start = 0
    for position, line in enumerate(text.split("\n")):
        if line:
            top = min(0.99, position / 100)
            lines.append(Line(start, start + len(line), (0.1, top, 0.9, top + 0.01)))
        start += len(line) + 1
    elements = tuple(Element(ElementKind.PARAGRAPH, line.start, line.end) for line in lines)
    return Page(number, 595.0, 842.0, 0, str(number), text, tuple(lines), elements, outcome)
