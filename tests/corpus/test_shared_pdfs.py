"""A fixed list of public files: each comes to its right end, and none holds up the others."""

from pathlib import Path

import pytest

from core.domain.pages import PageOutcome
from tests.corpus.conftest import Read
from tests.corpus.shared_files import SIXTY, Expected

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "pdf"
PRESENT = SIXTY if FOLDER.is_dir() else ()


def test_the_list_is_of_sixty_different_files() -> None:
    assert len({name for name, *_ in SIXTY}) == len(SIXTY) == 60


@pytest.mark.parametrize("expected", PRESENT, ids=[name for name, *_ in PRESENT])
def test_each_file_comes_to_its_end(expected: Expected, read: Read) -> None:
    name, page_count, code, phrase = expected
    result = read(FOLDER / name)
    assert result.code == code
    if page_count is not None:
        assert len(result.pages) == page_count
    assert phrase in result.text
    assert not any("laid out" in warning for page in result.pages for warning in page.warnings)
    for page in result.pages:
        assert page.outcome not in {PageOutcome.FAILED, PageOutcome.TIMED_OUT}
        assert bool(page.text) <= (page.outcome is PageOutcome.OK)
        rects = [line.rect for line in page.lines]
        assert not set("\0\ufb01\ufeff\u00ad") & set(page.text)
        assert all(0 <= x0 <= x1 <= 1 and 0 <= y0 <= y1 <= 1 for x0, y0, x1, y1 in rects)
        assert all(page.text[line.start : line.end].strip() for line in page.lines)
