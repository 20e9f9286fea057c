"""run.json: which ports the stack has and which processes it started, for the next `up`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

import psutil

from core.errors import AlreadyRunning, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

RUN_FILE = "run.json"
LOCK_FILE = "up.lock"
_PID_REUSE_TOLERANCE_S = 2.0


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """`created_at` (seconds since the epoch, from the kernel) tells a reused pid apart."""

    name: str
    pid: int
    created_at: float


@dataclass(frozen=True, slots=True)
class RunState:
    port_base: int
    supervisor_pid: int = 0
    processes: tuple[StartedProcess, ...] = field(default_factory=tuple)


def read_run_state(data_dir: Path) -> RunState | None:
    """None when no stack was ever started here. Raises SettingsError for a broken file."""
    path = data_dir / RUN_FILE
    if not path.exists():
        return None
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return RunState(
            port_base=int(data["port_base"]),
            supervisor_pid=int(data["supervisor_pid"]),
            processes=tuple(StartedProcess(**entry) for entry in data["processes"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is broken: {error}", hint="delete it while nothing runs"
        ) from error


def write_run_state(data_dir: Path, state: RunState) -> None:
    """Replace the file atomically: a reader sees the old or the new one."""
    path = data_dir / RUN_FILE
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def started_process(name: str, pid: int) -> StartedProcess:
    """Raises psutil.NoSuchProcess when it ended at once."""
    return StartedProcess(name, pid, psutil.Process(pid).create_time())


def find_process(recorded: StartedProcess) -> psutil.Process | None:
    """The process if it is still the one we started, else None."""
    try:
        process = psutil.Process(recorded.pid)
        is_same = abs(process.create_time() - recorded.created_at) < _PID_REUSE_TOLERANCE_S
        is_alive = is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return None
    return process if is_alive else None


def end_leftovers(state: RunState, *, grace_s: float = 3.0) -> list[str]:
    """End what a killed supervisor left running, with its descendants; returns their names."""
    ended: list[str] = []
    doomed: list[psutil.Process] = []
    for recorded in state.processes:
        process = find_process(recorded)
        if process is None:
            continue
        ended.append(recorded.name)
        with contextlib.suppress(psutil.Error):
            doomed += [process, *process.children(recursive=True)]
    for process in doomed:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(doomed, timeout=grace_s)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_s)
    return ended


def lock_data_dir(data_dir: Path) -> IO[str]:
    """Hold the data directory for this process's life; the kernel frees it when we die.

    Raises AlreadyRunning naming the holder.
    """
    file = (data_dir / LOCK_FILE).open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise AlreadyRunning(
            f"a stack is already running in {data_dir} (process {holder})",
            hint="use it, stop it with Ctrl-C, or choose another PINCITE_DATA_DIR",
        ) from error
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def wait_until_free(ports: list[int], is_free: Any, *, timeout_s: float) -> list[int]:
    """Ports still taken after waiting (a killed process may hold one for a moment)."""
    deadline = time.monotonic() + timeout_s
    busy = [port for port in ports if not is_free(port)]
    while busy and time.monotonic() < deadline:
        time.sleep(0.1)
        busy = [port for port in busy if not is_free(port)]
    return busy
