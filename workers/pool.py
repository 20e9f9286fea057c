"""Celery's prefork pool as we run it: what the main process and its children do besides tasks.

Import it after REMAP_SIGTERM is set (see `workers.lifecycle`).
"""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from billiard.process import current_process
from celery import bootsteps, signals
from celery.apps.worker import Worker

from core.domain.documents import Queue
from core.logging import get_logger
from workers.app import create_app
from workers.heartbeat import HeartbeatThread, touch
from workers.orphans import die_with_parent, is_orphan
from workers.runtime import WorkerRuntime
from workers.shutdown import SharedFlags

if TYPE_CHECKING:
    from pathlib import Path

    from core.settings import Settings

_LIVENESS_S = 2.0
_POLL_S = 0.05

_log = get_logger(__name__)


def start_pool(settings: Settings, liveness_file: Path) -> int:
    """Consume both queues until told to stop; the exit status."""
    flags = SharedFlags(settings.worker.concurrency)
    children = PoolChildren(settings, flags)
    app = create_app(settings, children.run_part)
    children.connect()
    # Having a receiver keeps Celery from setting logging up in its own way.
    signals.setup_logging.connect(_keep_logging, weak=False)
    app.steps["worker"].add(_liveness_step(liveness_file))
    worker = SoftWorker(
        app=app,
        hostname=f"pincite-{os.getpid()}@{socket.gethostname()}",
        pool_cls="prefork",
        concurrency=settings.worker.concurrency,
        queues=[queue.value for queue in Queue],
        without_gossip=True,
        without_mingle=True,
        quiet=True,
        loglevel=settings.log.level,
    )
    worker.flags = flags
    # Celery warns root about pickled messages; ours are JSON and nothing else is accepted.
    warnings.filterwarnings("ignore", message="You're running the worker with superuser")
    worker.start()
    return int(worker.exitcode or 0)


class SoftWorker(Worker):  # type: ignore[misc, unused-ignore]  # celery ships no types
    """A worker whose soft shutdown ends when its children are idle.

    Celery's own sleeps for the whole `worker_soft_shutdown_timeout`, however soon they finish.
    """

    flags: SharedFlags

    def wait_for_soft_shutdown(self) -> None:
        self.flags.request_stop()
        deadline = time.monotonic() + self.app.conf.worker_soft_shutdown_timeout
        while self.flags.is_any_busy and time.monotonic() < deadline:
            time.sleep(_POLL_S)


class PoolChildren:
    """What happens in each child. The same object lies in every one of them after the fork; its
    runtime is made there."""

    def __init__(self, settings: Settings, flags: SharedFlags) -> None:
        self._settings = settings
        self._flags = flags
        self._main_pid = os.getpid()
        self._slot = 0
        self._runtime: WorkerRuntime | None = None
        self._heartbeat: HeartbeatThread | None = None

    def connect(self) -> None:
        signals.worker_process_init.connect(self._start, weak=False)
        signals.worker_process_shutdown.connect(self._end, weak=False)

    def run_part(self, part_id: str) -> None:
        """The body of the task."""
        assert self._runtime is not None, "the pool's child was not initialised"
        self._flags.set_busy(self._slot, is_busy=True)
        try:
            self._runtime.run_part(part_id)
        finally:
            self._flags.set_busy(self._slot, is_busy=False)

    def _start(self, **_signal: Any) -> None:
        die_with_parent(self._main_pid)
        self._slot = int(getattr(current_process(), "index", 0) or 0)
        self._flags.set_busy(self._slot, is_busy=False)  # whoever was here before was killed
        runtime = WorkerRuntime(self._settings, must_stop=lambda: self._flags.must_stop)
        self._runtime = runtime
        self._heartbeat = HeartbeatThread(
            runtime.adapters.catalog.operations,
            runtime.adapters.clock,
            role="worker",
            doing=runtime.doing,
            on_beat=self._on_beat,
        )
        self._heartbeat.start()
        threading.Thread(target=runtime.warm_up, name="warm-up", daemon=True).start()

    def _end(self, **_signal: Any) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._runtime is not None:
            self._runtime.close()

    def _on_beat(self) -> None:
        if is_orphan(self._main_pid):
            os._exit(1)
        if self._runtime is not None:
            self._runtime.rest()


def _liveness_step(path: Path) -> type:
    """Touches a file from the main process's own event loop, so that the file grows old when the
    loop that consumes messages hangs."""

    class Liveness(bootsteps.StartStopStep):  # type: ignore[misc, unused-ignore]
        requires = ("celery.worker.components:Timer",)

        def __init__(self, parent: Any, **options: Any) -> None:
            super().__init__(parent, **options)
            self._entry: Any = None

        def start(self, parent: Any) -> None:
            touch(path)
            self._entry = parent.timer.call_repeatedly(_LIVENESS_S, touch, (path,))

        def stop(self, parent: Any) -> None:  # noqa: ARG002 - Celery's signature
            if self._entry is not None:
                self._entry.cancel()
                self._entry = None

    return Liveness


def _keep_logging(**_signal: Any) -> None:
    """Celery's signal to set logging up: it is set up."""
