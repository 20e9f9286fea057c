"""The page in a browser: ask, look at the page that is quoted, upload, delete, log in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from core.errors import GeneratorUnavailable
from core.ids import new_login_code
from core.settings import SOURCE_URL
from tests.api_fixtures import log_lines, make_world, migrated_catalog, world
from tests.api_world import World
from tests.browser import PHONE, Visit, chromium, visiting
from tests.fakes.quoting import Place, quoting
from tests.serving import Served, serving
from tests.stack import wait_until

__all__ = ["log_lines", "make_world", "migrated_catalog", "world"]
pytestmark = [pytest.mark.needs_command("chromium", "chromium"), pytest.mark.slow]

FIRST = "The pumps are tested yearly.\nThe tests are done by\nthe maintenance crew"
SECOND = "under the eyes of an inspector.\nA log is kept for ten years."
EVIL = '<img src=x onerror="alert(1)"><b>bold</b>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    with serving(world.services) as found:
        yield found


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visit]:
    """Somebody who is not logged in."""
    with visiting(browser, served.url) as found:
        yield found


def log_in(world: World, visit: Visit, path: str = "/") -> None:
    """By a fresh code, as `pincite up` prints it."""
    visit.open(f"/login?code={world.key(secret=new_login_code(), is_single_use=True)}")
    expect(visit.page.locator("#question")).to_be_visible()
    if path != "/":
        visit.open(path)


def ask(visit: Visit, question: str = "How often are the pumps tested?") -> Locator:
    """Ask with the keyboard; the newest turn."""
    box = visit.page.get_by_label("Your question")
    box.fill(question)
    box.press("Enter")
    return visit.page.locator(".turn").last


def lies_at(visit: Visit, mark: Locator, rect: list[float]) -> None:
    """The mark covers that rectangle; lines are marked first, exact words a moment later."""

    def covers() -> bool:
        return box_on_page(visit, mark) == pytest.approx(rect, abs=0.004)

    wait_until(covers, timeout_s=20, what=f"a mark at {rect}")


def box_on_page(visit: Visit, mark: Locator) -> list[float]:
    """Where a mark lies, 0..1 of the picture."""
    sheet, found = visit.page.locator("#picture").bounding_box(), mark.bounding_box()
    if sheet is None or found is None:  # it is being drawn again
        return []
    return [
        (found["x"] - sheet["x"]) / sheet["width"],
        (found["y"] - sheet["y"]) / sheet["height"],
        (found["x"] + found["width"] - sheet["x"]) / sheet["width"],
        (found["y"] + found["height"] - sheet["y"]) / sheet["height"],
    ]


def test_a_citation_shows_the_page_with_the_quote_marked(world: World, visit: Visit) -> None:
    accepted = world.ingest("hr/handbook.pdf", [FIRST, SECOND])
    over_two_pages = [
        Place(accepted, 1, "by\nthe maintenance crew"),
        Place(accepted, 2, "under the eyes of an inspector."),
    ]
    world.answers.make = quoting(
        world, [[Place(accepted, 1, "pumps are tested yearly.")], over_two_pages]
    )
    log_in(world, visit)
    page = visit.page
    turn = ask(visit)
    chips = turn.locator(".chip")
    expect(chips).to_have_text(["1", "2"])
    expect(turn.locator(".answer")).to_contain_text("“pumps are tested yearly.”")
    expect(turn.locator(".sources li")).to_have_text(
        ["[1] handbook, page 1", "[2] handbook, page 1, 2"]
    )
    # with the keyboard alone
    chips.first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#quote")).to_have_text("pumps are tested yearly.")
    expect(page.locator("#viewer-page")).to_have_text("page 1 of 2")
    expect(page.locator("#picture")).to_have_js_property("complete", True)
    assert page.locator("#picture").evaluate("(image) => image.naturalWidth") == 1200
    exact = exact_rects(world, accepted, 1, "pumps are tested yearly.")
    marks = page.locator(".mark")
    expect(marks).to_have_count(1)
    lies_at(visit, marks.first, exact[0])
    page.keyboard.press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    expect(chips.first).to_be_focused()
    # a quote over two pages
    chips.last.click()
    expect(marks).to_have_count(2)
    page.get_by_role("button", name="page 2", exact=True).click()
    expect(page.locator("#viewer-page")).to_have_text("page 2 of 2")
    expect(marks).to_have_count(1)
    (rect,) = exact_rects(world, accepted, 2, "under the eyes of an inspector.")
    lies_at(visit, marks.first, rect)
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    visit.check()


def exact_rects(world: World, accepted: Any, page: int, words: str) -> list[list[float]]:
    principal = world.owner()
    with world.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(accepted.document_id)
    stored = world.artifacts.read_pages(principal, version.sha256, version.parser_fingerprint)
    start = stored[page].text.index(words)
    rects = world.renderer.word_rects(principal, version, page, start, start + len(words))
    return [list(rect) for rect in rects]


def test_a_shared_address_opens_the_quote(world: World, visit: Visit) -> None:
    accepted = world.ingest("hr/handbook.pdf", [FIRST, SECOND])
    world.answers.make = quoting(world, [[Place(accepted, 2, "A log is kept for ten years.")]])
    log_in(world, visit)
    expect(ask(visit).locator(".chip")).to_have_count(1)
    ((principal, asked),) = world.answers.asked
    answer = world.catalog.answers.load(principal, asked.answer_id)
    visit.open(answer["sources"][0]["view_url"])
    expect(visit.page.locator("#quote")).to_have_text("A log is kept for ten years.")
    expect(visit.page.locator("#viewer-page")).to_have_text("page 2 of 2")
    expect(visit.page.locator(".mark")).to_have_count(1)
    # an answer of somebody else: the page all the same, without the quote
    visit.expected = ("Failed to load resource: the server responded with a status of 404",)
    visit.open(f"/view/{accepted.document_id}?answer=ans_{'0' * 32}&cite=c1&page=2")
    expect(visit.page.locator("#viewer-page")).to_have_text("page 2 of 2")
    expect(visit.page.locator("#quote")).to_be_hidden()
    visit.check()


def test_a_written_answer_shows_the_verdict_on_each_sentence(world: World, visit: Visit) -> None:
    accepted = world.ingest("hr/handbook.pdf", [FIRST, SECOND])
    quote = quoting(
        world,
        [
            [Place(accepted, 1, "pumps are tested yearly.")],
            [Place(accepted, 2, "A log is kept for ten years.")],
        ],
    )
    world.answers.make = lambda principal, asked: written(quote(principal, asked))
    log_in(world, visit)
    page = visit.page
    page.get_by_label("Kind of answer").select_option("Written")
    turn = ask(visit)
    text = turn.locator(".answer")
    expect(text).to_have_text("Pumps are tested yearly 1. By robots. Perhaps.")
    expect(text.locator(".unsupported")).to_have_text("By robots.")
    expect(text.locator(".unsupported")).to_have_attribute(
        "title", "Not supported by the documents."
    )
    expect(text.locator(".weak")).to_have_text("Perhaps.")
    expect(turn.locator(".badge")).to_have_text("Written by tiny, each sentence checked")
    expect(turn.locator(".facts")).to_contain_text("40 tokens read, 32 of them from the cache")
    text.locator(".chip").click()
    expect(page.locator("#quote")).to_have_text("pumps are tested yearly.")
    turn.locator(".sources button").last.click()  # its second quote
    expect(page.locator("#quote")).to_have_text("A log is kept for ten years.")
    expect(page.locator("#viewer-page")).to_have_text("page 2 of 2")
    assert world.answers.asked[-1][1].mode == "generative"
    visit.check()


def written(quoted: dict[str, Any]) -> dict[str, Any]:
    """The quotes' answer in a generator's words: one citation with both quotes, and one sentence
    of three supported."""
    citation, other = quoted["citations"]
    citation = citation | {"sources": [*citation["sources"], *other["sources"]]}
    sentences = [(0, 28, "supported"), (29, 39, "unsupported"), (40, 48, "weak")]
    return quoted | {
        "mode": "generative",
        "model": "tiny",
        "text": "Pumps are tested yearly [1]. By robots. Perhaps.",
        "citations": [citation | {"start": 0, "end": 23, "marker": {"start": 24, "end": 27}}],
        "sentences": [
            {"start": start, "end": end, "verdict": verdict, "support_score": 0.5,
             "citation_ids": [], "is_replaced": False}
            for start, end, verdict in sentences
        ],
        "usage": quoted["usage"] | {"prompt_tokens": 40, "cached_tokens": 32},
    }  # fmt: skip


def test_quotes_say_why_nothing_was_written(world: World, visit: Visit) -> None:
    accepted = world.ingest("hr/handbook.pdf", [FIRST])
    quote = quoting(world, [[Place(accepted, 1, "pumps are tested yearly.")]])
    world.answers.make = lambda *asked: quote(*asked) | {"mode_reason": "gate_failed"}
    log_in(world, visit)
    expect(ask(visit).locator(".facts")).to_contain_text("has not passed the gate")
    visit.check()


def test_an_error_leaves_the_text_that_was_shown(world: World, visit: Visit) -> None:
    world.answers.make = lambda *_: raise_error()
    world.answers.first_words = "The pumps are"
    log_in(world, visit)
    turn = ask(visit)
    expect(turn.get_by_role("alert")).to_have_text("the generator stopped")
    expect(turn.locator(".answer")).to_have_text("The pumps are")
    visit.check()


def raise_error() -> dict[str, Any]:
    raise GeneratorUnavailable("the generator stopped")


def test_a_conversation_is_kept_in_the_address(world: World, visit: Visit) -> None:
    log_in(world, visit)
    page = visit.page
    expect(ask(visit, "How often are the pumps tested?").locator(".badge")).to_be_visible()
    world.clock.advance(1)
    expect(ask(visit, "And the valves?").locator(".badge")).to_be_visible()
    first, second = (asked for _, asked in world.answers.asked)
    assert first.conversation_id == second.conversation_id
    assert page.url == f"{visit.origin}/#{first.conversation_id}"
    assert [message.content for message in second.history] == [
        "How often are the pumps tested?",
        "Not in the documents.",
    ]
    page.reload()
    expect(page.locator(".asked")).to_have_text(
        ["How often are the pumps tested?", "And the valves?"]
    )
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(ask(visit, "Who keeps the log?").locator(".badge")).to_be_visible()
    assert world.answers.asked[-1][1].conversation_id != first.conversation_id
    # one that was deleted meanwhile
    visit.expected = ("Failed to load resource: the server responded with a status of 404",)
    visit.open(f"/#conv_{'0' * 32}")
    page.reload()
    expect(page.get_by_role("alert")).to_have_text("That conversation is not there any more.")
    visit.check()


def test_what_is_not_in_the_documents_is_an_answer(world: World, visit: Visit) -> None:
    log_in(world, visit)
    turn = ask(visit, "Who won the match?")
    expect(turn.locator(".badge")).to_have_text("Not in your documents")
    expect(turn.locator(".answer")).to_have_text("Not in the documents.")
    expect(turn.locator(".chip")).to_have_count(0)
    visit.check()


def test_streaming_can_be_stopped(world: World, visit: Visit) -> None:
    world.answers.gate = threading.Event()
    log_in(world, visit)
    turn = ask(visit)
    page = visit.page
    expect(page.get_by_role("log")).to_have_attribute("aria-busy", "true")
    expect(turn.locator(".answer")).to_have_text("Not i")
    page.get_by_role("button", name="Stop").click()
    expect(turn.locator(".facts")).to_have_text("Stopped.")
    expect(turn.locator(".answer")).to_have_text("Not i")
    expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_label("Your question")).to_be_focused()
    assert world.answers.closed.wait(20)
    assert world.answers.num_finished == 0
    visit.check()


def test_text_is_never_markup(world: World, visit: Visit) -> None:
    accepted = world.ingest(f"hr/{EVIL.replace('/', '')}.pdf", [f"It says {EVIL} here."])
    world.answers.make = quoting(world, [[Place(accepted, 1, f"It says {EVIL} here.")]])
    log_in(world, visit)
    turn = ask(visit, EVIL)
    page = visit.page
    expect(turn.locator(".asked")).to_have_text(EVIL)
    expect(turn.locator(".answer")).to_contain_text(EVIL)
    turn.locator(".chip").click()
    expect(page.locator("#quote")).to_contain_text(EVIL)
    page.get_by_role("button", name="Documents").click()
    expect(page.locator("#document-list .name")).to_contain_text("<img src=x onerror=")
    assert page.locator("#log img, #log b, #documents img, #quote img").count() == 0
    assert visit.dialogs == []
    visit.check()


def test_documents_are_uploaded_opened_and_deleted(
    world: World, visit: Visit, tmp_path: Path
) -> None:
    good, large = tmp_path / "Prüfung.pdf", tmp_path / "large.pdf"
    good.write_bytes(b"%PDF-1.7 one")
    with large.open("wb") as sparse:
        sparse.truncate(world.settings.api.max_upload_bytes + 1)
    ready = world.ingest("hr/handbook.pdf", [FIRST])
    log_in(world, visit)
    page = visit.page
    expect(page.locator("#queue")).to_have_text("1 document")
    page.get_by_role("button", name="Documents").click()
    page.get_by_label("Collection").fill("plant")
    page.locator("#files").set_input_files([good, large])
    expect(page.locator("#uploads li").filter(has_text="large.pdf")).to_contain_text("larger than")
    rows = page.locator("#document-list li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("queued")
    expect(rows.first).to_contain_text("plant")
    expect(page.get_by_role("alert")).to_have_text("No ingest worker is running: documents wait.")
    assert list(world.store.keys("documents")) == ["hr/handbook.pdf", "plant/Prüfung.pdf"]
    # asked first; a no is a no
    page.get_by_role("button", name="Delete handbook").click()
    assert visit.dialogs == ["Delete “handbook” for good?"]
    expect(rows).to_have_count(2)
    rows.last.get_by_role("button", name="handbook", exact=True).click()
    expect(page.locator("#viewer-page")).to_have_text("page 1 of 1")
    page.get_by_role("button", name="Documents").click()
    visit.accepts_dialogs = True
    page.get_by_role("button", name="Delete handbook").click()
    expect(rows).to_have_count(1)
    with world.catalog.snapshot(world.owner()) as snapshot:
        assert ready.document_id not in {found.document_id for found in snapshot.documents()[0]}
    visit.check()


def test_logging_in_and_out(world: World, visit: Visit) -> None:
    visit.expected = ("Failed to load resource: the server responded with a status of 401",)
    visit.open()
    page = visit.page
    told = page.get_by_role("heading", name="You are not logged in")
    expect(told).to_be_visible()
    expect(page.locator("#refused")).to_be_hidden()
    expect(page.locator("#question")).to_be_hidden()
    source = page.get_by_role("link", name="source code")
    expect(source).to_have_attribute("href", SOURCE_URL)
    code = world.key(secret=new_login_code(), is_single_use=True)
    visit.open(f"/login?code={code}")
    expect(page.locator("#question")).to_be_focused()
    assert page.url == f"{visit.origin}/"
    page.get_by_role("button", name="Log out").click()
    expect(told).to_be_visible()
    visit.open(f"/login?code={code}")
    expect(told).to_be_visible()
    expect(page.locator("#refused")).to_be_visible()
    visit.check()


def test_a_session_that_ends_is_told_at_the_next_question(world: World, visit: Visit) -> None:
    visit.expected = ("Failed to load resource: the server responded with a status of 401",)
    log_in(world, visit)
    world.clock.advance(31 * 86_400)
    ask(visit)
    expect(visit.page.get_by_role("heading", name="You are not logged in")).to_be_visible()
    visit.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(
    world: World, browser: Browser, served: Served, scheme: str
) -> None:
    accepted = world.ingest(f"hr/{'a-long-name-' * 12}.pdf", [FIRST, SECOND])
    world.answers.make = quoting(world, [[Place(accepted, 1, "The pumps are tested yearly.")]])
    with visiting(browser, served.url, viewport=PHONE, color_scheme=scheme) as visit:
        log_in(world, visit)
        turn = ask(visit, "Why?" + "y" * 200)
        expect(turn.locator(".chip")).to_have_count(1)
        assert visit.has_no_sideways_scroll()
        turn.locator(".chip").click()
        expect(visit.page.locator(".mark")).to_have_count(1)
        assert visit.has_no_sideways_scroll()
        visit.page.get_by_role("button", name="Close the page").click()
        visit.page.get_by_role("button", name="Documents").click()
        expect(visit.page.locator("#document-list li")).to_have_count(1)
        assert visit.has_no_sideways_scroll()
        paper = visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(20, 24, 30)") is (scheme == "dark")
        visit.check()
