"""One supervised process: start, readiness, restart with backoff, stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pincite.supervisor.run_state import StartedProcess, started_process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LAUNCHER = Path(__file__).with_name("launch.py")
_MAX_BACKOFF_S = 30.0
_STABLE_S = 60.0
_MAX_LOG_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to run one process. `is_ready` answers at once; `stop_signal` asks it to end, and after
    `stop_grace_s` it is killed. `wave` orders starting: a wave starts when the one before is ready.
    """

    name: str
    arguments: Sequence[str]
    environ: Mapping[str, str]
    working_dir: Path
    is_ready: Callable[[], bool]
    wave: int
    stop_signal: signal.Signals = signal.SIGTERM
    stop_grace_s: float = 5.0
    death_signal: signal.Signals = signal.SIGKILL
    urls: Mapping[str, str] = field(default_factory=dict)


class Child:
    """Owns at most one running process of its spec."""

    def __init__(self, spec: ChildSpec, log_dir: Path) -> None:
        self.spec = spec
        self.log_path = log_dir / f"{spec.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.num_restarts = 0
        self.was_ready = False
        self._started_at = 0.0
        self._failures = 0
        self._not_before = 0.0

    def start(self) -> StartedProcess | None:
        """Start it; None when it could not even be executed (the log says why)."""
        self._rotate_log()
        self.was_ready = False
        self._started_at = time.monotonic()
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER)]
        arguments = [str(int(self.spec.death_signal)), str(os.getpid()), *self.spec.arguments]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*launcher, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.spec.working_dir,
                env=dict(self.spec.environ),
                start_new_session=True,  # the terminal's Ctrl-C is for the supervisor alone
            )
        with contextlib.suppress(Exception):
            return started_process(self.spec.name, self.process.pid)
        return None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None and self.is_running() else None

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def check_ready(self) -> bool:
        """Ask once; remembers a yes until the process ends."""
        if not self.was_ready and self.is_running():
            self.was_ready = self.spec.is_ready()
        return self.was_ready and self.is_running()

    def note_exit(self) -> float:
        """Record that it ended; returns the seconds to wait before the next start."""
        if time.monotonic() - self._started_at > _STABLE_S:
            self._failures = 0
        delay = min(_MAX_BACKOFF_S, 0.25 * 2.0 ** min(self._failures, 10))
        self._failures += 1
        self.num_restarts += 1
        self._not_before = time.monotonic() + delay
        self.process = None
        return delay

    def is_due(self) -> bool:
        return self.process is None and time.monotonic() >= self._not_before

    def ask_to_stop(self) -> None:
        if self.is_running() and self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(self.spec.stop_signal)

    def wait_stopped(self, deadline: float) -> None:
        """Wait until the deadline (monotonic seconds), then kill its whole session."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)  # what it left behind in its session
        self.process.wait()

    def log_tail(self, num_lines: int = 8) -> str:
        """The last lines of its log, for an error message."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(max(0, self.log_path.stat().st_size - 8192))
                return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-num_lines:])
        except OSError:
            return ""

    def _rotate_log(self) -> None:
        with contextlib.suppress(OSError):
            if self.log_path.stat().st_size > _MAX_LOG_BYTES:
                self.log_path.replace(self.log_path.with_suffix(".log.1"))
