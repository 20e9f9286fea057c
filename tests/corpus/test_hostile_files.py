"""Files made to harm: each ends in a typed error in bounded time, and the next one is read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ParserFailure, ParserOutOfMemory, ParserTimedOut
from core.settings import ParserSettings
from ingest.parsing.sandbox import Parser
from tests import builders_pdf as build
from tests.builders_pdf import Sheet, pdf, plain
from tests.corpus.conftest import Read

IMPATIENT = ParserSettings(page_timeout_s=2.0, memory_bytes=300 * 1024 * 1024)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: b"", "corrupt"),
        (lambda: b"%PDF-1.7\n", "corrupt"),
        (lambda: b"%PDF-1.7\n" + bytes(range(256)) * 40, "corrupt"),
        (lambda: b"\x7fELF" + b"\0" * 5000, "unsupported"),
        (lambda: plain("words " * 50)[:500], "corrupt"),
        (build.no_pages, "corrupt"),
        (lambda: build.page_tree("", 100_000), "corrupt"),
        (build.page_loop, "corrupt"),
        (lambda: build.with_password("secret"), "needs_password"),
        (build.for_a_certificate, "needs_password"),
        (lambda: pdf([Sheet()]), "corrupt"),
        (lambda: pdf([Sheet().picture(0, 0, 595, 842)]), "needs_ocr"),
        (lambda: pdf([Sheet().text(72, 700, "unreadable words", font="F9")]), "needs_ocr"),
        (lambda: build.glyph_bomb(1_000_000), "corrupt"),
        (lambda: plain("Nothing wrong here."), "text"),
    ],
    ids=[
        *("empty", "header only", "noise", "program", "cut", "no pages", "lie", "loop"),
        *("password", "certificate", "blank", "scan", "no unicode", "glyphs", "fine"),
    ],
)
def test_each_file_comes_to_its_end(
    make: Callable[[], bytes], code: str, read: Read, tmp_path: Path
) -> None:
    path = tmp_path / "document"
    path.write_bytes(make())
    assert read(path).code == code


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (build.form_bomb, ParserTimedOut),
        (lambda: build.glyph_bomb(30_000_000), ParserFailure),
    ],
    ids=["forms in forms", "a mountain of glyphs"],
)
def test_bombs_are_defused_and_the_parser_goes_on(
    make: Callable[[], bytes], error: type[ParserFailure], tmp_path: Path
) -> None:
    bomb, fine = tmp_path / "bomb", tmp_path / "fine"
    bomb.write_bytes(make())
    fine.write_bytes(plain("Still here."))
    assert bomb.stat().st_size < 200_000
    with Parser(IMPATIENT) as parser:
        with pytest.raises(error) as raised:
            parser.parse(bomb, 1, 32)
        assert isinstance(raised.value, ParserTimedOut | ParserOutOfMemory)
        assert parser.parse(fine, 1, 32).pages[0].text == "Still here."


def test_a_bomb_among_pages_costs_only_its_page(tmp_path: Path) -> None:
    """The forms of the bomb on page 2 of 3."""
    path = tmp_path / "document"
    path.write_bytes(build.form_bomb_among(["First page.", None, "Last page."]))
    with Parser(IMPATIENT) as parser:
        pages = parser.parse(path, 1, 32).pages
    assert [page.text for page in pages] == ["First page.", "", "Last page."]
    assert [page.outcome.value for page in pages] == ["ok", "timed_out", "ok"]
