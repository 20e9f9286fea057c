"""One lease being worked on: what a stage may use, and how it says that it lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from core.domain.access import Principal
from core.domain.pipeline import PipelineFingerprint
from core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.artifacts import Artifacts
    from core.domain.documents import LeasedPart
    from core.domain.pages import Page
    from core.ports.catalog import Catalog
    from core.ports.clock import Clock
    from core.ports.models import Embedder, TokenCounter
    from core.ports.object_store import ObjectStore
    from core.ports.vector_index import VectorIndex
    from core.settings import Settings
    from ingest.backoff import Backoff
    from ingest.parsing.base import ParsedRange

_RENEW_FRACTION = 0.25  # of the lease: three renewals may fail before it is lost
_SOFT_STOP_S = 75.0


class PageParser(Protocol):
    """`ingest.parsing.sandbox.Parser` as the pipeline needs it."""

    def parse(
        self, path: Path, first: int, last: int, on_page: Callable[[Page], None] | None = None
    ) -> ParsedRange:
        """Pages first..last (1-based, as far as they exist) in a child process.

        `on_page` is called after each page; what it raises ends the parse and comes through.
        Raises DocumentError, ParserFailure.
        """


class StopRequested(Exception):
    """The worker is shutting down, or the part has run long enough: hand the part back.

    Not an error; what is done so far is stored, and the next attempt finds it.
    """


@dataclass(frozen=True)
class PipelineDeps:
    """Everything outside a part. `must_stop` is asked between pages and batches."""

    settings: Settings
    catalog: Catalog
    object_store: ObjectStore
    artifacts: Artifacts
    vector_index: VectorIndex
    embedder: Embedder
    token_counter: TokenCounter
    clock: Clock
    parser: PageParser
    backoff: Backoff
    temp_dir: Path
    must_stop: Callable[[], bool] = field(default=lambda: False)


class PartRun:
    """A leased part on its way through its stage. `part` is the lease as last renewed."""

    def __init__(self, part: LeasedPart, deps: PipelineDeps) -> None:
        self.part = part
        self.deps = deps
        self.principal = Principal.system(part.tenant_id, "worker")
        self.fingerprint = PipelineFingerprint.parse(part.pipeline_fingerprint)
        self._started = self._renewed = deps.clock.monotonic()

    @property
    def sha256(self) -> str:
        """Raises NotFound before the first parse part recorded the content."""
        if self.part.sha256 is None:
            raise NotFound("the content of this version is not recorded yet")
        return self.part.sha256

    @property
    def seconds(self) -> float:
        return self.deps.clock.monotonic() - self._started

    def progress(self) -> None:
        """Work has gone on: renew the lease when a quarter of it is over. Raises LeaseLost."""
        lease_s = self.deps.settings.worker.lease_s
        now = self.deps.clock.monotonic()
        if now - self._renewed >= lease_s * _RENEW_FRACTION:
            self.part = self.deps.catalog.parts.renew(self.part, lease_s=lease_s)
            self._renewed = now

    def is_time_to_stop(self) -> bool:
        return self.deps.must_stop() or self.seconds >= _SOFT_STOP_S

    def checkpoint(self) -> None:
        """Between batches. Raises LeaseLost, StopRequested."""
        self.progress()
        if self.is_time_to_stop():
            raise StopRequested
