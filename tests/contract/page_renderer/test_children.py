"""Parser children behind the renderer: cached, bounded, replaced when they die, never orphaned."""

import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.domain.pages import Page, PageOutcome
from core.errors import (
    Gone,
    InvalidInput,
    Overloaded,
    ParserCrashed,
    ParserFailure,
    TimedOut,
)
from core.settings import Settings
from tests.contract.page_renderer.conftest import ARTIFACTS, ILL_CHILD, MakeRenderer, World


def children() -> set[int]:
    """Living processes that this one has started."""
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    }


def ill(*lines: str) -> World:
    """A document for `tests/ill_child.py`."""
    return World.holding("\n".join(lines).encode(), [], len(lines))


def short(page_timeout_s: float) -> Settings:
    return Settings.model_validate({"parser": {"page_timeout_s": page_timeout_s}})


def test_a_picture_is_made_once(world: World, make_renderer: MakeRenderer) -> None:
    first = make_renderer(world)
    png = first.page_png(world.principal, world.version, 2, width_px=200)
    key = f"ten_a/{world.version.sha256}/pages/2@200.png"
    assert world.store.read(world.principal, ARTIFACTS, key) == png
    # Another renderer finds it, without a child and without the document.
    world.store.delete(
        world.principal,
        ARTIFACTS,
        world.artifacts.original_key(world.principal, world.version.sha256),
    )
    before = children()
    assert make_renderer(world).page_png(world.principal, world.version, 2, width_px=200) == png
    assert children() == before


def test_bytes_that_are_no_longer_kept_are_gone(world: World, make_renderer: MakeRenderer) -> None:
    renderer = make_renderer(world)
    world.store.delete_prefix(world.principal, ARTIFACTS, "ten_a/")
    with pytest.raises(Gone):
        renderer.page_png(world.principal, world.version, 1, width_px=200)


@pytest.mark.parametrize("width_px", [0, -5, 4001])
def test_widths_are_bounded(world: World, make_renderer: MakeRenderer, width_px: int) -> None:
    with pytest.raises(InvalidInput):
        make_renderer(world).page_png(world.principal, world.version, 1, width_px=width_px)


def test_the_rectangles_of_a_word_are_exact(world: World, make_renderer: MakeRenderer) -> None:
    """Helvetica's own widths: "pump" begins after "The " and is 2.334 em wide."""
    renderer = make_renderer(world)
    start = world.pages[0].text.index("pump")
    (rect,) = renderer.word_rects(world.principal, world.version, 1, start, start + 4)
    left = (72 + 11 * (0.611 + 0.556 + 0.556 + 0.278)) / 595
    assert rect[0] == pytest.approx(left, abs=0.002)
    assert rect[2] == pytest.approx(left + 11 * (0.556 * 3 + 0.833) / 595, abs=0.003)


def test_a_text_that_reads_differently_now_gives_whole_lines(
    world: World, make_renderer: MakeRenderer
) -> None:
    page = world.pages[0]
    other = Page(
        **{
            **{name: getattr(page, name) for name in page.__dataclass_fields__},
            "text": page.text.upper(),
        }
    )
    world.artifacts.write_pages(
        world.principal, world.version.sha256, "parser2", [other, *world.pages[1:]]
    )
    version = replace(world.version, parser_fingerprint="parser2")
    rects = make_renderer(world).word_rects(world.principal, version, 1, 4, 8)
    assert rects == (page.lines[0].rect,)


def test_a_page_that_is_not_stored_has_no_rectangles(
    world: World, make_renderer: MakeRenderer
) -> None:
    version = replace(world.version, parser_fingerprint="never")
    assert make_renderer(world).word_rects(world.principal, version, 1, 0, 3) == ()


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ("abort", ParserCrashed),
        ("hang", TimedOut),
        ("fault", ParserFailure),
        ("nonsense", ParserCrashed),
    ],
)
def test_a_page_that_kills_its_child_is_a_typed_error_and_the_next_one_is_drawn(
    make_renderer: MakeRenderer, order: str, error: type[Exception]
) -> None:
    world = ill(order, "text fine")
    renderer = make_renderer(world, short(1.0), command=ILL_CHILD)
    with pytest.raises(error):
        renderer.page_png(world.principal, world.version, 1, width_px=100)
    assert renderer.page_png(world.principal, world.version, 2, width_px=100) == b"fine"


def test_what_a_child_says_is_checked(make_renderer: MakeRenderer) -> None:
    """A page of the ill child has a line over 0.1..0.9; the stored one has another text."""
    page = Page(1, 100, 100, 0, "1", "other", (), (), PageOutcome.OK)
    world = World.holding(b"text words", [page], 1)
    renderer = make_renderer(world, command=ILL_CHILD)
    assert renderer.word_rects(world.principal, world.version, 1, 0, 5) == ()


def test_more_callers_than_children_wait_and_then_are_told_so(
    make_renderer: MakeRenderer,
) -> None:
    world = ill("hang", "text fine")
    renderer = make_renderer(world, short(2.0), command=ILL_CHILD, max_children=1, max_wait_s=0.05)
    outcomes: list[str] = []

    def ask(page: int) -> None:
        try:
            renderer.page_png(world.principal, world.version, page, width_px=100)
            outcomes.append("drawn")
        except (Overloaded, TimedOut) as error:
            outcomes.append(error.code)

    first = threading.Thread(target=ask, args=(1,))
    first.start()
    while not renderer.num_busy:  # until it has the only turn
        first.join(0.01)
    ask(2)
    first.join()
    assert outcomes == ["overloaded", "timed_out"]
    ask(2)
    assert outcomes[-1] == "drawn"


def test_children_and_files_are_given_up_when_idle_and_at_the_end(
    world: World, make_renderer: MakeRenderer
) -> None:
    before = children()
    renderer = make_renderer(world)
    renderer.page_png(world.principal, world.version, 1, width_px=100)
    renderer.page_png(world.principal, world.version, 2, width_px=100)
    kept = children() - before
    assert len(kept) == 1  # one was enough for both
    folder = Path(psutil.Process(kept.pop()).cwd())
    assert [path.suffix for path in folder.iterdir()] == [".pdf"]
    renderer.drop_idle()
    assert children() == before
    assert not list(folder.iterdir())
    renderer.page_png(world.principal, world.version, 3, width_px=100)
    renderer.close()
    assert children() == before
    assert not folder.exists()


def test_a_renderer_can_be_used_from_many_threads(
    world: World, make_renderer: MakeRenderer
) -> None:
    renderer = make_renderer(world)
    sizes: list[int] = []

    def draw(width_px: int) -> None:
        png = renderer.page_png(world.principal, world.version, 1, width_px=width_px)
        sizes.append(int.from_bytes(png[16:20], "big"))

    threads = [threading.Thread(target=draw, args=(100 + number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sizes) == list(range(100, 108))
