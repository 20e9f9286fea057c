"""The parser child may do what it likes: what was read is kept, and nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.domain.pages import Page, PageOutcome
from core.errors import (
    CorruptDocument,
    ParserCrashed,
    ParserFailure,
    ParserOutOfMemory,
    ParserTimedOut,
)
from core.settings import ParserSettings
from ingest.parsing.sandbox import Parser, parser_fingerprint

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-P", str(ROOT / "tests" / "ill_child.py"))
# Patient, since a busy machine may take its time; only who waits for a time-out is not.
SETTINGS = ParserSettings(page_timeout_s=60.0, memory_bytes=400 * 1024 * 1024)
IMPATIENT = SETTINGS.model_copy(update={"page_timeout_s": 1.0})
HANGING = {"hang", "sleep"}
OK, FAILED, TIMED_OUT = PageOutcome.OK, PageOutcome.FAILED, PageOutcome.TIMED_OUT


@pytest.fixture
def parser(request: pytest.FixtureRequest) -> Iterator[Parser]:
    """Impatient for the tests of a hanging `order`."""
    spec = getattr(request.node, "callspec", None)
    hangs = spec is not None and spec.params.get("order") in HANGING
    with Parser(IMPATIENT if hangs else SETTINGS, command=COMMAND) as made:
        yield made


def document(folder: Path, *lines: str) -> Path:
    path = folder / "document"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def outcomes(pages: tuple[Page, ...]) -> list[PageOutcome]:
    return [page.outcome for page in pages]


def test_pages_come_in_order_with_what_they_say(parser: Parser, tmp_path: Path) -> None:
    path = document(tmp_path, "text one", "text two", "text three")
    heard: list[int] = []
    parsed = parser.parse(path, 2, 9, lambda page: heard.append(page.number))
    assert [(page.number, page.text) for page in parsed.pages] == [(2, "two"), (3, "three")]
    assert heard == [2, 3]
    assert parsed.facts.page_count == 3


@pytest.mark.parametrize(
    ("order", "outcome", "reason"),
    [
        ("abort", FAILED, "crashed (SIGABRT)"),
        ("leave", FAILED, "crashed (exit code 3)"),
        ("hang", TIMED_OUT, "took too long"),
        ("sleep", TIMED_OUT, "took too long"),
        ("eat", FAILED, "more memory"),
        ("memory", FAILED, "more memory"),
        ("fault", FAILED, "this page is broken"),
        ("bug", FAILED, "ZeroDivisionError"),
        ("nonsense", FAILED, "failed on a page"),
    ],
)
def test_only_the_guilty_page_is_lost(
    parser: Parser, tmp_path: Path, order: str, outcome: PageOutcome, reason: str
) -> None:
    path = document(tmp_path, "text one", order, "text three", "text four")
    heard: list[int] = []
    parsed = parser.parse(path, 1, 32, lambda page: heard.append(page.number))
    assert outcomes(parsed.pages) == [OK, outcome, OK, OK]
    assert reason in parsed.pages[1].warnings[0]
    assert [page.text for page in parsed.pages] == ["one", "", "three", "four"]
    assert heard == [1, 2, 3, 4]


def test_a_page_that_dies_once_is_read_in_a_fresh_child(parser: Parser, tmp_path: Path) -> None:
    parsed = parser.parse(document(tmp_path, "text one", "once abort"), 1, 32)
    assert [page.text for page in parsed.pages] == ["one", "second time lucky"]


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ("abort", ParserCrashed),
        ("hang", ParserTimedOut),
        ("eat", ParserOutOfMemory),
        ("bug", ParserFailure),
        ("nonsense", ParserFailure),
    ],
)
def test_a_file_that_cannot_be_opened_is_a_typed_error(
    parser: Parser, tmp_path: Path, order: str, error: type[ParserFailure]
) -> None:
    with pytest.raises(error):
        parser.parse(document(tmp_path, f"open {order}", "text one"), 1, 32)


@pytest.mark.parametrize(
    ("order", "error"),
    [("abort", ParserCrashed), ("hang", ParserTimedOut), ("memory", ParserOutOfMemory)],
)
def test_a_document_of_which_every_page_dies_is_a_typed_error(
    parser: Parser, tmp_path: Path, order: str, error: type[ParserFailure]
) -> None:
    with pytest.raises(error):
        parser.parse(document(tmp_path, order, order), 1, 32)


def test_a_document_of_which_no_page_can_be_read_is_corrupt(parser: Parser, tmp_path: Path) -> None:
    with pytest.raises(CorruptDocument):
        parser.parse(document(tmp_path, "fault", "fault"), 1, 32)
    # A part of a longer one is not the whole of it.
    parsed = parser.parse(document(tmp_path, "fault", "fault", "text three"), 1, 2)
    assert outcomes(parsed.pages) == [FAILED, FAILED]


def test_document_errors_come_through(parser: Parser, tmp_path: Path) -> None:
    with pytest.raises(CorruptDocument, match="nothing is in it"):
        parser.parse(document(tmp_path, "open text"), 1, 32)


def test_what_libraries_print_does_not_reach_the_answers(parser: Parser, tmp_path: Path) -> None:
    parsed = parser.parse(document(tmp_path, "chatter", "text two"), 1, 32)
    assert [page.text for page in parsed.pages] == ["words", "two"]


def test_the_time_of_a_range_ends(tmp_path: Path) -> None:
    settings = IMPATIENT.model_copy(update={"document_timeout_s": 1.5})
    path = document(tmp_path, "text one", *["hang"] * 20)
    with Parser(settings, command=COMMAND) as parser:
        parsed = parser.parse(path, 1, 32)
    assert outcomes(parsed.pages) == [OK, *[TIMED_OUT] * 20]


def test_what_on_page_raises_comes_through_and_the_child_is_ended(
    parser: Parser, tmp_path: Path
) -> None:
    path = document(tmp_path, *["text words"] * 9)

    def stop(page: Page) -> None:
        if page.number == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        parser.parse(path, 1, 9, stop)
    assert parser.child_pid is None
    assert len(parser.parse(path, 1, 9).pages) == 9


def test_the_child_serves_many_documents_and_is_recycled(tmp_path: Path) -> None:
    path = document(tmp_path, "text one")
    settings = SETTINGS.model_copy(update={"recycle_documents": 3})
    with Parser(settings, command=COMMAND) as parser:
        pids = []
        for _ in range(5):
            parser.parse(path, 1, 32)
            pids.append(parser.child_pid)
    assert pids[0] == pids[1]
    assert pids[2] is None  # ended after its third document
    assert pids[3] == pids[4] != pids[0]


def test_a_swollen_child_is_recycled(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"recycle_rss_bytes": 1})
    with Parser(settings, command=COMMAND) as parser:
        parser.parse(document(tmp_path, "text one"), 1, 32)
        assert parser.child_pid is None


def test_closing_leaves_no_process(tmp_path: Path) -> None:
    parser = Parser(SETTINGS, command=COMMAND)
    parser.parse(document(tmp_path, "text one"), 1, 32)
    pid = parser.child_pid
    assert pid is not None
    parser.close()
    assert not psutil.pid_exists(pid)


PARENT = """
import sys
from pathlib import Path
from core.settings import ParserSettings
from ingest.parsing.sandbox import Parser
parser = Parser(ParserSettings(page_timeout_s=600), command=sys.argv[2:])
def say(page):
    print(parser.child_pid, flush=True)
parser.parse(Path(sys.argv[1]), 1, 32, say)
"""


def test_a_killed_parent_leaves_no_child_even_in_a_hanging_page(tmp_path: Path) -> None:
    path = document(tmp_path, "text one", "hang")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path), *COMMAND],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        gone, alive = psutil.wait_procs([child], timeout=30)
    assert gone == [child]
    assert not alive


def test_the_child_has_no_secrets_and_no_network(
    parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_KEY", "s3cret")
    parsed = parser.parse(document(tmp_path, "environ", "network"), 1, 32)
    environ, network = parsed.pages
    assert parsed.facts.metadata["parser_network"] == parser.report["network"]
    assert "PATH" in environ.text.split()
    assert "SOME_SECRET_KEY" not in environ.text
    if parser.report["network"] == "isolated":
        # Not "connection refused": there is no way to anywhere, not even to this machine.
        assert network.text == f"errno {__import__('errno').ENETUNREACH}"
    else:
        assert parser.report["network"] == "open"


def test_limits_are_in_force_where_the_system_has_them(parser: Parser, tmp_path: Path) -> None:
    parser.parse(document(tmp_path, "text one"), 1, 32)
    if not sys.platform.startswith("linux"):
        assert parser.report["memory"] == "polled"
        return
    assert parser.report == {
        "network": parser.report["network"],
        "memory": "limited",
        "parent": "watched",
    }
    assert parser.child_pid is not None
    child = psutil.Process(parser.child_pid)
    assert child.rlimit(psutil.RLIMIT_AS)[0] == SETTINGS.memory_bytes
    assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert child.nice() >= 10
    assert child.cwd() != os.getcwd()  # noqa: PTH109 - as the system says it


def test_the_fingerprint_changes_with_what_changes_the_pages() -> None:
    same = parser_fingerprint(ParserSettings(page_timeout_s=3))
    assert parser_fingerprint(ParserSettings()) == same
    assert parser_fingerprint(ParserSettings(max_page_chars=10)) != same
    assert "." not in same
