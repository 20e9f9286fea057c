"""What a pool child holds: its adapters, its parser, and the part it is working on.

Made after the fork at the first task, since connections and clients do not survive one. It knows
nothing of Celery.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from core.errors import PinciteError
from core.factory import Adapters
from core.logging import get_logger
from ingest.backoff import Backoff
from ingest.parsing.sandbox import Parser
from ingest.part_run import PipelineDeps
from ingest.pipeline import Outcome, run_part
from workers.outbox import relay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.settings import Settings

_PARSER_IDLE_S = 20.0  # a new one takes half a second, this one holds 60 MB

_log = get_logger(__name__)


class WorkerRuntime:
    """Not thread-safe but for `doing` and `rest`: a pool child works on one part at a time."""

    def __init__(
        self, settings: Settings, *, must_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._settings = settings
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self.adapters = Adapters(settings)
        self._parser = Parser(settings.parser)
        self._must_stop = must_stop
        self._document_id: str | None = None
        self._working = threading.Lock()
        self._worked_at = self.adapters.clock.monotonic()

    @cached_property
    def _deps(self) -> PipelineDeps:
        """Made with the first part: asks the catalog which tenants own the buckets."""
        settings, adapters = self._settings, self.adapters
        return PipelineDeps(
            settings=settings,
            catalog=adapters.catalog,
            object_store=adapters.object_store,
            artifacts=adapters.artifacts,
            vector_index=adapters.vector_index,
            embedder=adapters.embedder,
            token_counter=adapters.token_counter,
            clock=adapters.clock,
            parser=self._parser,
            backoff=Backoff(settings.worker.retry_base_s),
            temp_dir=_temp_dir(settings),
            must_stop=self._must_stop,
        )

    def warm_up(self) -> None:
        """Import and connect what the first part will need: a second or two that the first document
        need not wait for. May run beside it; servers that are down are left to it."""
        with suppress(PinciteError):
            deps = self._deps
            deps.token_counter.count("warm")
            deps.vector_index.manifest()
            deps.embedder.info()

    def doing(self) -> str | None:
        """The document being worked on."""
        return self._document_id

    def rest(self) -> None:
        """End the parser's child when no part has come for a while. Returns at once when one is
        being worked on."""
        if not self._working.acquire(blocking=False):
            return
        try:
            if self.adapters.clock.monotonic() - self._worked_at >= _PARSER_IDLE_S:
                self._parser.close()
        finally:
            self._working.release()

    def run_part(self, part_id: str) -> Outcome | None:
        """Lease the part, work on it, and announce what follows from it.

        None when there is nothing to do: the part is done, leased by somebody else, or no longer
        wanted. Raises nothing that is ours: a lease that could not be taken or ended is found by
        the sweeper.
        """
        with self._working:
            try:
                return self._run_part(part_id)
            finally:
                self._worked_at = self.adapters.clock.monotonic()

    def _run_part(self, part_id: str) -> Outcome | None:
        try:
            part = self._deps.catalog.parts.lease(
                part_id, owner=self._owner, lease_s=self._settings.worker.lease_s
            )
            if part is None:
                _log.debug("part.not_mine", part_id=part_id)
                return None
            self._document_id = part.document_id
            outcome = run_part(part, self._deps)
            relay(self._deps.catalog.parts, self.adapters.job_queue)
        except PinciteError as error:
            _log.warning("part.left", part_id=part_id, code=error.code, error=error.message)
            return None
        finally:
            self._document_id = None
        return outcome

    def close(self) -> None:
        """End the parser's child and all connections."""
        self._parser.close()
        self.adapters.close()


def _temp_dir(settings: Settings) -> Path:
    """Private, in the data directory: the system's may be small, or shared with others."""
    folder = settings.data_dir.resolve() / "tmp"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
