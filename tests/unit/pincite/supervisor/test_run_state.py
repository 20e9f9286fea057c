"""run.json and the lock: who runs here, and what a killed supervisor left."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import AlreadyRunning, SettingsError
from pincite.supervisor.run_state import (
    RUN_FILE,
    RunState,
    StartedProcess,
    end_leftovers,
    find_process,
    lock_data_dir,
    read_run_state,
    started_process,
    write_run_state,
)

_IGNORES_TERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('on', flush=True); time.sleep(60)"
)


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ignores SIGTERM."""
    process = subprocess.Popen([sys.executable, "-c", _IGNORES_TERM], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_state_survives_the_file(tmp_path: Path) -> None:
    state = RunState(20016, 5, (StartedProcess("api", 7, 1.5),))
    write_run_state(tmp_path, state)
    assert read_run_state(tmp_path) == state
    assert [path.name for path in tmp_path.iterdir()] == [RUN_FILE]


def test_no_file_is_no_stack_and_a_broken_one_an_error(tmp_path: Path) -> None:
    assert read_run_state(tmp_path) is None
    (tmp_path / RUN_FILE).write_text('{"port_base": 1}')
    with pytest.raises(SettingsError, match=RUN_FILE):
        read_run_state(tmp_path)


def test_leftovers_are_ended_even_when_they_ignore_being_asked(
    stubborn: subprocess.Popen[bytes],
) -> None:
    recorded = started_process("worker", stubborn.pid)
    ended = end_leftovers(RunState(20000, 1, (recorded,)), grace_s=0.2)
    assert ended == ["worker"]
    assert not psutil.pid_exists(stubborn.pid)


def test_a_reused_pid_is_left_alone() -> None:
    me = psutil.Process()
    recorded = StartedProcess("api", me.pid, me.create_time() - 3600)
    assert find_process(recorded) is None
    assert end_leftovers(RunState(20000, 1, (recorded,)), grace_s=0.1) == []


def test_a_second_holder_of_the_data_directory_is_refused_with_the_first_ones_pid(
    tmp_path: Path,
) -> None:
    held = lock_data_dir(tmp_path)
    with pytest.raises(AlreadyRunning, match=str(os.getpid())):
        lock_data_dir(tmp_path)
    held.close()
    lock_data_dir(tmp_path).close()
