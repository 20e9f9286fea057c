"""The loop of `pincite up`: start in waves, watch, restart, stop in reverse."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from core.errors import AlreadyRunning, InternalError, TimedOut
from pincite.supervisor.child import Child
from pincite.supervisor.embedded import fill_embedded
from pincite.supervisor.ports import PortBlock, busy_ports, choose_block, is_free
from pincite.supervisor.run_state import (
    RunState,
    StartedProcess,
    end_leftovers,
    lock_data_dir,
    read_run_state,
    wait_until_free,
    write_run_state,
)
from pincite.supervisor.secrets import StackSecrets, load_or_create_secrets
from pincite.supervisor.stack import stack_specs

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.settings import Settings

_POLL_S = 0.1
_LEFTOVER_WAIT_S = 8.0
_MAX_FAILED_STARTS = 5

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """Told on every change while starting. `state`: starting, ready, ended, restarting, stopped."""

    name: str
    state: str
    seconds: float


class Supervisor:
    """Owns the stack of one data directory from `start` to `stop`.

    Args:
        settings: as configured; empty URLs mean our own servers.
        prepare: called once the first wave (servers) is ready, before the second (API, worker,
            sweeper): migrations and buckets.
        on_progress: called from the thread that runs `start` and `watch`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        prepare: Callable[[Settings, StackSecrets], None],
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._configured = settings
        self._prepare = prepare
        self._on_progress = on_progress
        self._children: list[Child] = []
        self._started: dict[str, StartedProcess] = {}
        self._began = time.monotonic()
        self._stop = threading.Event()
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.data_dir.chmod(0o700)  # it may have been made by `models fetch`
        self._lock = lock_data_dir(settings.data_dir)
        self.secrets = load_or_create_secrets(settings.data_dir)
        self.ports = self._take_ports()
        self.settings = fill_embedded(settings, self.ports, self.secrets)

    def start(self) -> None:
        """Start everything; returns when all is ready.

        Raises TimedOut (with the end of the log) when a process does not become ready in time,
        InternalError when one keeps ending. Everything started is then stopped.
        """
        log_dir = self.settings.data_dir / "logs"
        log_dir.mkdir(mode=0o700, exist_ok=True)
        specs = stack_specs(self._configured, self.settings, self.ports, self.secrets)
        self._children = [Child(spec, log_dir) for spec in specs]
        try:
            self._start_wave(0)
            # The models load while the others start: only the servers that `prepare` needs must
            # be ready now.
            self._wait_ready([c for c in self._children if c.spec.name in ("broker", "objects")])
            self._prepare(self.settings, self.secrets)
            self._start_wave(1)
            self._wait_ready(self._children)
        except BaseException:
            self.stop()
            raise

    def watch(self) -> None:
        """Restart what ends, until `request_stop`."""
        while not self._stop.wait(_POLL_S):
            for child in self._children:
                self._tend(child)

    def request_stop(self) -> None:
        """Make `watch` return; safe from a signal handler."""
        self._stop.set()

    def stop(self) -> None:
        """Stop in reverse order of starting: those who use the servers before the servers."""
        for wave in (1, 0):
            members = [child for child in reversed(self._children) if child.spec.wave == wave]
            begun = time.monotonic()
            for child in members:
                child.ask_to_stop()
            for child in members:
                child.wait_stopped(begun + child.spec.stop_grace_s)
                self._started.pop(child.spec.name, None)
                self._tell(child, "stopped")
        self._write_state()

    def children(self) -> list[Child]:
        return list(self._children)

    def _take_ports(self) -> PortBlock:
        configured = self._configured.stack.port_base
        state = read_run_state(self._configured.data_dir)
        if state is not None:
            ended = end_leftovers(state)
            if ended:
                _log.info("supervisor.leftovers_ended", names=ended)
        base = configured or (state.port_base if state is not None else 0)
        block = PortBlock(base) if base else choose_block()
        busy = wait_until_free(busy_ports(block), is_free, timeout_s=_LEFTOVER_WAIT_S)
        if busy and state is not None and not configured:
            _log.warning("supervisor.ports_taken", ports=busy)
            block = choose_block()
        elif busy:
            raise AlreadyRunning(
                f"these ports are taken: {', '.join(map(str, busy))}",
                hint="stop what listens there, or set another PINCITE_STACK__PORT_BASE",
            )
        write_run_state(self._configured.data_dir, RunState(block.base))
        return block

    def _start_wave(self, wave: int) -> None:
        for child in self._children:
            if child.spec.wave == wave:
                self._start(child)
        self._write_state()

    def _start(self, child: Child) -> None:
        started = child.start()
        if started is not None:
            self._started[child.spec.name] = started
        self._tell(child, "starting")

    def _wait_ready(self, children: list[Child]) -> None:
        deadline = time.monotonic() + self.settings.stack.start_timeout_s
        waiting = [child for child in children if not child.was_ready]
        while waiting:
            for child in list(waiting):
                if child.check_ready():
                    self._tell(child, "ready")
                    waiting.remove(child)
                elif child.num_restarts >= _MAX_FAILED_STARTS:
                    raise InternalError(
                        f"{child.spec.name} keeps ending while starting:\n{child.log_tail()}",
                        hint=f"the whole log is in {child.log_path}",
                    )
                else:
                    self._tend(child)
            if waiting and time.monotonic() > deadline:
                slow = waiting[0]
                raise TimedOut(
                    f"{slow.spec.name} was not ready in time; the end of its log:\n"
                    f"{slow.log_tail()}",
                    hint=f"the whole log is in {slow.log_path}",
                )
            if waiting and self._stop.wait(_POLL_S / 2):
                raise KeyboardInterrupt

    def _tend(self, child: Child) -> None:
        if child.is_running():
            if not child.was_ready and child.check_ready():
                self._tell(child, "ready")
            return
        if child.process is not None:
            code = child.process.returncode
            delay = child.note_exit()
            self._started.pop(child.spec.name, None)
            _log.warning("supervisor.child_ended", name=child.spec.name, code=code, delay_s=delay)
            self._tell(child, "ended")
        elif child.is_due():
            self._start(child)
            self._write_state()

    def _tell(self, child: Child, state: str) -> None:
        self._on_progress(Progress(child.spec.name, state, time.monotonic() - self._began))

    def _write_state(self) -> None:
        running = tuple(self._started.values())
        write_run_state(
            self.settings.data_dir,
            RunState(self.ports.base, os.getpid() if running else 0, running),
        )


def stop_on_signals(supervisor: Supervisor) -> None:
    """Ctrl-C and SIGTERM stop the stack in order; call from the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.request_stop())
