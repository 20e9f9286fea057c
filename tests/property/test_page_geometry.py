"""Rectangles lie where the ink is, on pages shown in every way; offsets lead to the right words.

The page is rendered, and dark pixels are compared with the rectangles of its lines and words.
"""

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from core.domain.pages import Page, Rect
from ingest.normalize import normalize
from tests.builders_pdf import Sheet, pdf
from tests.pdf_reading import composed_with_chars, opened

WIDTH_PX = 900
DARK = 128

VIEWS: dict[str, Callable[[], Sheet]] = {
    "plain": Sheet,
    "cropped": lambda: Sheet(crop=(40.0, 60.0, 540.0, 760.0)),
    "turned": lambda: Sheet(rotate=90),
    "upside down": lambda: Sheet(rotate=180),
    "cropped and turned": lambda: Sheet(crop=(30.0, 50.0, 560.0, 800.0), rotate=270),
    "off the origin": lambda: Sheet(box=(-100.0, -50.0, 495.0, 792.0)),
}
WORDS = ["pump", "Valve", "gauge", "45", "Nm", "(main)", "PX-200", "is", "opened,", "slowly"]


def sheet(view: str, seed: int) -> Sheet:
    """Lines of words all over the middle of the page, which every view shows."""
    chance = random.Random(seed)
    made = VIEWS[view]()
    for y in range(640, 200, -chance.choice([18, 26, 40])):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 7)))
        made.text(chance.randint(80, 220), y, text, size=chance.choice([8, 11, 14]))
    return made


def ink(png: bytes) -> Image.Image:
    """White where there is ink, black elsewhere."""
    return Image.open(io.BytesIO(png)).convert("L").point(lambda value: 255 * (value < DARK))


def has_ink(picture: Image.Image, rect: Rect) -> bool:
    return picture.crop(pixels(picture, rect, 0)).getbbox() is not None


def without(picture: Image.Image, rects: tuple[Rect, ...]) -> Image.Image:
    rest = picture.copy()
    for rect in rects:
        rest.paste(0, pixels(rest, rect, 1))
    return rest


def pixels(picture: Image.Image, rect: Rect, margin: int) -> tuple[int, int, int, int]:
    width, height = picture.size
    return (
        int(rect[0] * width) - margin,
        int(rect[1] * height) - margin,
        int(rect[2] * width) + 1 + margin,
        int(rect[3] * height) + 1 + margin,
    )


def word_bounds(page: Page) -> list[tuple[int, int]]:
    bounds = []
    start = 0
    for word in page.text.replace("\n", " ").split(" "):
        if word and word != "|":
            bounds.append((start, start + len(word)))
        start += len(word) + 1
    return bounds


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_line_and_word_rectangles_hold_the_ink(view: str, seed: int, tmp_path: Path) -> None:
    with opened(pdf([sheet(view, seed)]), tmp_path) as document:
        composed, raw = composed_with_chars(document, 1)
        picture = ink(document.render(1, WIDTH_PX))
    page = composed.page
    assert page.lines
    rects = tuple(line.rect for line in page.lines)
    assert all(0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1 for x0, y0, x1, y1 in rects)
    assert all(has_ink(picture, rect) for rect in rects)
    assert without(picture, rects).getbbox() is None

    words = [composed.word_rects(start, end, raw) for start, end in word_bounds(page)]
    assert words
    assert all(len(found) == 1 and has_ink(picture, found[0]) for found in words)
    assert without(picture, tuple(found[0] for found in words)).getbbox() is None


@pytest.mark.parametrize("view", VIEWS)
def test_the_rectangles_of_one_word_hold_no_other(view: str, tmp_path: Path) -> None:
    made = VIEWS[view]().text(120, 500, "alpha").text(120, 400, "omega")
    other = VIEWS[view]().text(120, 500, "alpha")
    with opened(pdf([made]), tmp_path) as document:
        composed, raw = composed_with_chars(document, 1)
        start = composed.page.text.index("omega")
        rects = composed.word_rects(start, start + 5, raw)
        both = ink(document.render(1, WIDTH_PX))
    with opened(pdf([other]), tmp_path) as document:
        only_alpha = ink(document.render(1, WIDTH_PX))
    assert len(rects) == 1
    assert without(both, rects).tobytes() == only_alpha.tobytes()


@pytest.mark.parametrize("view", VIEWS)
def test_text_reads_the_same_in_every_view(view: str, tmp_path: Path) -> None:
    expected = ["The pump is opened slowly.", "The gauge shows 45 Nm."]
    made = VIEWS[view]().text(120, 500, expected[0]).text(120, 300, expected[1])
    with opened(pdf([made]), tmp_path) as document:
        page = composed_with_chars(document, 1)[0].page
    assert page.text.split("\n\n") == expected
    assert page.rotation == made.rotate


_LINE = st.lists(st.sampled_from([*WORDS, "caf\xe9", "50\x25", "na\xefve"]), min_size=1, max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(40, 300), _LINE), min_size=1, max_size=20))
def test_lines_cover_exactly_what_is_printed(
    tmp_path: Path, drawn: list[tuple[int, list[str]]]
) -> None:
    """`text[start:end]` of each line is what was drawn, less a hyphen that parts a word."""
    made = Sheet()
    for number, (x, words) in enumerate(drawn):
        made.text(x, 800 - 30 * number, " ".join(words))
    with opened(pdf([made]), tmp_path) as document:
        composed, raw = composed_with_chars(document, 1)
        plain = document.read(1)
    page = composed.page
    printed = [normalize(" ".join(words)).text for _, words in drawn]
    assert [page.text[line.start : line.end] for line in page.lines] == printed
    covered = [index for line in page.lines for index in range(line.start, line.end)]
    assert covered == sorted(set(covered))
    rest = "".join(char for index, char in enumerate(page.text) if index not in set(covered))
    assert set(rest) <= set(" |\n")
    assert len(plain.lines) == len(raw.lines)
