"""A child process that speaks JSON lines, held to deadlines and a memory limit.

For work that may hang, crash or eat memory whatever it is given: parsing and rendering of files
that strangers made. One caller at a time. What the child says is data to be checked, not trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The folder that holds our packages: the child's only import path beside the installed ones.
_IMPORT_ROOT = Path(__file__).resolve().parent.parent
_MAX_STDERR_BYTES = 64 * 1024
_TICK_S = 0.25
_PATIENCE = 4.0  # times the limit, for a child that the machine gives no processor time


class ChildEnded(Exception):
    """The child is gone. `returncode` is negative for a signal, None when we killed it."""

    def __init__(self, reason: str, returncode: int | None = None) -> None:
        super().__init__(reason)
        self.returncode = returncode

    @property
    def signal_number(self) -> int | None:
        code = self.returncode
        return -code if code is not None and code < 0 else None


class ChildTimedOut(ChildEnded):
    """It was killed: no answer in time."""


class ChildTooLarge(ChildEnded):
    """It was killed: more memory than allowed, where the system does not enforce the limit."""


class ChildSaidNonsense(ChildEnded):
    """It was killed: a line too long, or not a JSON object."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """`memory_bytes` is polled here only if `must_poll_memory` (macOS ignores RLIMIT_AS)."""

    memory_bytes: int
    max_line_bytes: int
    must_poll_memory: bool = not sys.platform.startswith("linux")


def minimal_environment(folder: Path) -> dict[str, str]:
    """What a child needs and nothing else: no secrets, one thread, its own temporary folder."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(_IMPORT_ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


class ChildProcess:
    """Starts at once, in its own session. `close` (or leaving the `with`) always ends it."""

    def __init__(
        self,
        command: Sequence[str],
        limits: ChildLimits,
        *,
        folder: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=folder,
            env=dict(environ if environ is not None else minimal_environment(folder)),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._readable = select.poll()  # select() refuses descriptors above 1023
        self._readable.register(self._out, select.POLLIN | select.POLLHUP)
        self._stats = psutil.Process(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """One line to the child. Raises ChildEnded."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._in, line) :]
        except OSError as error:
            raise self._ended() from error

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The child's next line.

        The limit is wall time, as long as the child gets at least half of it as processor time: a
        machine with too much to do must not look like a file that never ends. Waits four times as
        long at most. Raises ChildEnded and its subclasses; the child is dead then.
        """
        started = time.monotonic()
        cpu_before = self._cpu_s()
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return self._decode(line)
            if len(self._buffer) > self._limits.max_line_bytes:
                raise self._killed(ChildSaidNonsense("it wrote a line that is too long"))
            waited = time.monotonic() - started
            if waited >= timeout_s and (
                waited >= _PATIENCE * timeout_s or self._cpu_s() - cpu_before >= 0.5 * timeout_s
            ):
                raise self._killed(ChildTimedOut(f"no answer within {timeout_s:g} s"))
            self._check_memory()
            self._fill(min(_TICK_S, max(timeout_s - waited, 0.01)))

    def rss_bytes(self) -> int:
        """Resident memory; 0 once it is gone."""
        try:
            return int(self._stats.memory_info().rss)
        except psutil.Error:
            return 0

    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr. It may quote a document: not for the log."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _MAX_STDERR_BYTES))
        return self._stderr.read().decode(errors="replace")

    def close(self) -> None:
        """Kill the child and whatever it started, and wait for it. Safe to call again."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._stderr.close()

    def _fill(self, timeout_s: float) -> None:
        """Read what is there, waiting for it. Raises ChildEnded at the end of the stream."""
        if not self._readable.poll(timeout_s * 1000):
            return
        data = os.read(self._out, 1 << 20)
        if not data:
            raise self._ended()
        self._buffer += data

    def _decode(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError as error:
            raise self._killed(ChildSaidNonsense("it wrote something else than JSON")) from error
        if not isinstance(message, dict):
            raise self._killed(ChildSaidNonsense("it wrote something else than an object"))
        return message

    def _check_memory(self) -> None:
        if self._limits.must_poll_memory and self.rss_bytes() > self._limits.memory_bytes:
            raise self._killed(ChildTooLarge(f"more than {self._limits.memory_bytes} bytes"))

    def _cpu_s(self) -> float:
        try:
            times = self._stats.cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def _killed(self, error: ChildEnded) -> ChildEnded:
        self.close()
        return error

    def _ended(self) -> ChildEnded:
        """It ended by itself (or is about to: its pipe is closed)."""
        try:
            code: int | None = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        return ChildEnded(f"it ended with {code}", code)
