"""One supervised process: it dies with us, ends when asked, and is not restarted in a frenzy."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pincite.supervisor.child import Child, ChildSpec


def wait_until(is_true: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def make_child(tmp_path: Path) -> Callable[..., Child]:
    def make(code: str, **changes: object) -> Child:
        ready = tmp_path / "ready"
        facts: dict[str, object] = {
            "name": "sample",
            "arguments": [sys.executable, "-c", code],
            "environ": {"PATH": os.environ["PATH"], "READY": str(ready)},
            "working_dir": tmp_path,
            "is_ready": ready.exists,
            "wave": 0,
        }
        return Child(ChildSpec(**(facts | changes)), tmp_path)  # type: ignore[arg-type]

    return make


_READY = "import os, time; open(os.environ['READY'], 'w').close(); "


def test_it_becomes_ready_and_ends_when_asked(make_child: Callable[..., Child]) -> None:
    child = make_child(_READY + "time.sleep(60)")
    child.start()
    assert not child.check_ready() or child.was_ready
    wait_until(child.check_ready)
    child.ask_to_stop()
    child.wait_stopped(time.monotonic() + 5)
    assert child.process is not None
    assert child.process.returncode == -signal.SIGTERM
    assert child.pid is None


def test_what_it_left_in_its_session_is_killed_with_it(make_child: Callable[..., Child]) -> None:
    child = make_child(
        "import subprocess, sys, time;"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid,"
        " flush=True); time.sleep(60)"
    )
    child.start()
    wait_until(lambda: child.log_tail().strip().isdigit())
    grandchild = psutil.Process(int(child.log_tail()))
    child.ask_to_stop()
    child.wait_stopped(time.monotonic() + 5)
    wait_until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)


def test_one_that_ignores_the_signal_is_killed_at_the_deadline(
    make_child: Callable[..., Child],
) -> None:
    child = make_child(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + _READY + "time.sleep(60)"
    )
    child.start()
    wait_until(child.check_ready)
    child.ask_to_stop()
    child.wait_stopped(time.monotonic() + 0.2)
    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL


def test_restarts_wait_longer_each_time(make_child: Callable[..., Child]) -> None:
    child = make_child("raise SystemExit(3)")
    delays = []
    for _ in range(12):
        child.start()
        wait_until(lambda: not child.is_running())
        delays.append(child.note_exit())
    assert delays == sorted(delays)
    assert delays[0] < 1 < delays[-1] <= 30
    assert not child.is_due()
    assert child.num_restarts == 12


def test_a_program_that_is_not_there_ends_at_once_and_the_log_says_why(
    make_child: Callable[..., Child],
) -> None:
    child = make_child("", arguments=["/nowhere/weed"])
    child.start()
    wait_until(lambda: not child.is_running())
    assert "No such file" in child.log_tail()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has PDEATHSIG")
def test_it_dies_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import os, sys, time
from pathlib import Path
from pincite.supervisor.child import Child, ChildSpec
here = Path({str(tmp_path)!r})
spec = ChildSpec("sample", [sys.executable, "-c", "import time; time.sleep(60)"],
                 {{"PATH": os.environ["PATH"]}}, here, lambda: True, 0)
child = Child(spec, here)
child.start()
print(child.pid, flush=True)
time.sleep(60)
"""
    supervisor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert supervisor.stdout is not None
    child = psutil.Process(int(supervisor.stdout.readline()))
    wait_until(lambda: "launch.py" not in " ".join(child.cmdline()))
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
