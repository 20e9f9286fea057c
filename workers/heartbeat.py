"""Telling the catalog, and a file, that this process lives and what it does.

The catalog's rows are what the operations page shows; they do not decide about leases (those are
renewed by the work itself). The file is for a liveness probe without dependencies.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import psutil

from core.domain.operations import Heartbeat
from core.errors import PinciteError
from core.logging import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.ports.catalog import OperationsCatalog
    from core.ports.clock import Clock

EVERY_S = 5.0

_log = get_logger(__name__)


class HeartbeatThread:
    """Beats in the background until `stop`, at once and then every few seconds.

    Args:
        doing: what the process does at the moment (a document id, or a sentence), None when idle.
        on_beat: run with each beat, whether or not the catalog answers.
    """

    def __init__(
        self,
        operations: OperationsCatalog,
        clock: Clock,
        *,
        role: str,
        doing: Callable[[], str | None],
        on_beat: Callable[[], None] = lambda: None,
        version: str = "",
    ) -> None:
        self._operations = operations
        self._clock = clock
        self._role = role
        self._doing = doing
        self._on_beat = on_beat
        self._version = version
        self._started_at = clock.now()
        self._process = psutil.Process()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=EVERY_S)

    def beat(self) -> None:
        """One heartbeat. Raises CatalogUnavailable."""
        host, pid = socket.gethostname(), os.getpid()
        self._operations.beat(
            Heartbeat(
                process=f"{host}:{pid}:{self._role}",
                role=self._role,
                pid=pid,
                host=host,
                started_at=self._started_at,
                seen_at=self._clock.now(),
                doing=self._doing(),
                rss_bytes=self._process.memory_info().rss,
                version=self._version,
            )
        )

    def _run(self) -> None:
        has_failed = False
        while True:
            self._on_beat()
            try:
                self.beat()
                has_failed = False
            except PinciteError as error:
                if not has_failed:  # said once, not every few seconds
                    _log.warning("heartbeat.failed", code=error.code)
                has_failed = True
            if self._stopped.wait(EVERY_S):
                return


def touch(path: Path) -> None:
    """Make the file's time now; a full disk must not stop the process that says so."""
    try:
        path.touch()
    except OSError as error:
        _log.warning("liveness.failed", error=type(error).__name__)
