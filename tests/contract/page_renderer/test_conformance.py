"""What every page renderer does."""

import io

import pytest
from PIL import Image

from core.errors import InvalidInput, NotFound
from core.ports.page_renderer import PageRenderer
from tests.contract.page_renderer.conftest import World


@pytest.mark.parametrize("width_px", [120, 333])
def test_a_page_is_as_wide_as_asked_and_shaped_as_displayed(
    renderer: PageRenderer, world: World, width_px: int
) -> None:
    for page in world.pages:
        png = renderer.page_png(world.principal, world.version, page.number, width_px=width_px)
        width, height = Image.open(io.BytesIO(png)).size
        assert width == width_px
        assert abs(height - width_px * page.height / page.width) <= 1.5


def test_a_page_has_ink_where_its_lines_are(renderer: PageRenderer, world: World) -> None:
    png = renderer.page_png(world.principal, world.version, 1, width_px=600)
    picture = Image.open(io.BytesIO(png)).convert("L")
    for line in world.pages[0].lines:
        x0, y0, x1, y1 = line.rect
        part = picture.crop((x0 * 600, y0 * picture.height, x1 * 600, y1 * picture.height))
        assert min(part.tobytes()) < 200


@pytest.mark.parametrize("page", [0, 4, 1000])
def test_there_are_no_other_pages(renderer: PageRenderer, world: World, page: int) -> None:
    with pytest.raises(NotFound):
        renderer.page_png(world.principal, world.version, page, width_px=100)
    with pytest.raises(NotFound):
        renderer.word_rects(world.principal, world.version, page, 0, 1)


def test_words_have_a_rectangle_on_each_line_they_stand_on(
    renderer: PageRenderer, world: World
) -> None:
    page = world.pages[0]
    start, end = page.text.index("before"), page.text.index("removed")
    rects = renderer.word_rects(world.principal, world.version, 1, start, end)
    assert len(rects) == 2
    for rect, line in zip(rects, page.lines, strict=True):
        assert line.rect[0] - 0.01 <= rect[0] < rect[2] <= line.rect[2] + 0.01
        assert line.rect[1] - 0.01 <= rect[1] < rect[3] <= line.rect[3] + 0.01
    # Not the whole of the lines: "before the" ends the first, "cover is " begins the second.
    assert rects[0][0] > page.lines[0].rect[0] + 0.1
    assert rects[1][2] < page.lines[1].rect[2] - 0.05


def test_a_range_outside_the_text_is_refused(renderer: PageRenderer, world: World) -> None:
    end = len(world.pages[0].text)
    with pytest.raises(InvalidInput):
        renderer.word_rects(world.principal, world.version, 1, 0, end + 1)
