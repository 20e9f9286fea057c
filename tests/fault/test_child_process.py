"""A child that speaks JSON lines, and what becomes of one that does not."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from core.child_process import (
    ChildEnded,
    ChildLimits,
    ChildProcess,
    ChildSaidNonsense,
    ChildTimedOut,
    ChildTooLarge,
    minimal_environment,
)

LIMITS = ChildLimits(memory_bytes=1 << 30, max_line_bytes=100_000)
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def child(folder: Path, code: str, limits: ChildLimits = LIMITS) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code], limits, folder=folder)


def test_lines_go_there_and_back(tmp_path: Path) -> None:
    with child(tmp_path, ECHO) as process:
        for number in range(3):
            process.send({"number": number, "text": "ünï\n"})
        assert [process.receive(30)["number"] for _ in range(3)] == [0, 1, 2]
        assert process.is_alive
        assert process.rss_bytes() > 0
        pid = process.pid
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print('not json', flush=True); input()", ChildSaidNonsense),
        ("print('[1, 2]', flush=True); input()", ChildSaidNonsense),
        ("print('x' * 500_000, flush=True); input()", ChildSaidNonsense),
        ("while True: pass", ChildTimedOut),
        ("import time; time.sleep(600)", ChildTimedOut),
        ("raise SystemExit(7)", ChildEnded),
    ],
    ids=["text", "list", "too long", "busy", "asleep", "gone"],
)
def test_an_answer_that_is_none_ends_the_child(
    code: str, error: type[ChildEnded], tmp_path: Path
) -> None:
    process = child(tmp_path, code)
    with pytest.raises(error):
        process.receive(1.0)
    assert not psutil.pid_exists(process.pid)
    process.close()  # and again does no harm


def test_how_it_ended_is_told(tmp_path: Path) -> None:
    with child(tmp_path, "import os; os.abort()") as process, pytest.raises(ChildEnded) as raised:
        process.receive(30)
    assert raised.value.signal_number == signal.SIGABRT
    with child(tmp_path, "raise SystemExit(7)") as process, pytest.raises(ChildEnded) as raised:
        process.receive(30)
    assert raised.value.returncode == 7
    assert raised.value.signal_number is None


def test_sending_to_one_that_is_gone_says_so(tmp_path: Path) -> None:
    with child(tmp_path, "raise SystemExit(0)") as process:
        with pytest.raises(ChildEnded):
            process.receive(30)
        with pytest.raises(ChildEnded):
            process.send({})


def test_memory_is_polled_where_the_system_does_not_limit_it(tmp_path: Path) -> None:
    limits = ChildLimits(100 * 1024 * 1024, 100_000, must_poll_memory=True)
    hungry = "held = [bytearray(10**7) for _ in range(60)]\nwhile True: pass"
    process = child(tmp_path, hungry, limits)
    with pytest.raises(ChildTooLarge):
        process.receive(60)
    assert not psutil.pid_exists(process.pid)


def test_what_the_child_started_goes_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('{\"pid\": %d}' % other.pid, flush=True)\n"
        "other.wait()"
    )
    with child(tmp_path, code) as process:
        grandchild = psutil.Process(process.receive(30)["pid"])
        assert grandchild.is_running()
    gone, alive = psutil.wait_procs([grandchild], timeout=30)
    assert gone == [grandchild]
    assert not alive


def test_the_child_gets_only_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    code = "import json, os; print(json.dumps({**os.environ, 'cwd': os.getcwd()}), flush=True)"
    with child(tmp_path, code) as process:
        found = process.receive(30)
    assert Path(str(found.pop("cwd"))) == tmp_path
    found.pop("LC_CTYPE", None)  # Python adds it
    assert found == minimal_environment(tmp_path)
    assert "s3cret" not in str(found)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "s3cret"
