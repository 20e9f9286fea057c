"""The whole pipeline in one process: a real catalog (SQLite), everything else a fake.

`Pipeline.run` plays courier and worker: it takes what the outbox announces, leases it and runs it,
until nothing is due. Time is the fake clock's.
"""

import functools
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from core.adapters.catalog import SqlCatalog
from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import (
    Accepted,
    DocumentRecord,
    DocumentStatus,
    LeasedPart,
    ObservedObject,
    Queue,
)
from core.settings import Settings
from ingest.backoff import Backoff
from ingest.intake import Intake
from ingest.part_run import PipelineDeps
from ingest.pipeline import Outcome, run_part
from tests.fakes.clock import FakeClock
from tests.fakes.job_queue import FakeJobQueue
from tests.fakes.models import FakeEmbedder, FakeTokenCounter
from tests.fakes.object_store import FakeObjectStore
from tests.fakes.parser import FakeParser
from tests.fakes.vector_index import FakeVectorIndex
from workers.outbox import relay

BUCKET = "documents"


@dataclass
class Pipeline:
    """Build with `make_pipeline`."""

    settings: Settings
    clock: FakeClock
    catalog: SqlCatalog
    principal: Principal
    store: FakeObjectStore
    index: FakeVectorIndex
    embedder: FakeEmbedder
    parser: FakeParser
    queue: FakeJobQueue
    intake: Intake
    temp_dir: Path
    must_stop: Callable[[], bool] = lambda: False
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)

    @property
    def artifacts(self) -> Artifacts:
        return Artifacts(self.store, self.store.artifacts_bucket)

    @property
    def deps(self) -> PipelineDeps:
        return PipelineDeps(
            settings=self.settings,
            catalog=self.catalog,
            object_store=self.store,
            artifacts=self.artifacts,
            vector_index=self.index,
            embedder=self.embedder,
            token_counter=FakeTokenCounter(),
            clock=self.clock,
            parser=self.parser,
            backoff=Backoff(self.settings.worker.retry_base_s, rng=random.Random(7)),
            temp_dir=self.temp_dir,
            must_stop=self.must_stop,
        )

    def put(self, key: str, text: str, *, queue: Queue = Queue.INTERACTIVE) -> Accepted:
        """Put an object and have it accepted, as the bucket watch would."""
        stat = self.store.put(self.principal, BUCKET, key, text.encode())
        observed = ObservedObject(BUCKET, key, stat.etag, stat.size_bytes, stat.last_modified)
        return self.intake.accept(self.principal, observed, queue=queue)

    def announced(self) -> list[str]:
        """Part ids that are due now, in the order of their announcement."""
        self.catalog.parts.sweep()
        while relay(self.catalog.parts, self.queue):
            pass
        return self.queue.take()

    def lease(self, part_id: str, owner: str = "test") -> LeasedPart | None:
        return self.catalog.parts.lease(part_id, owner=owner, lease_s=self.settings.worker.lease_s)

    def step(self) -> list[Outcome]:
        """Run everything that is due now, once."""
        deps = self.deps
        outcomes = []
        for part_id in self.announced():
            part = self.lease(part_id)
            if part is not None:
                outcome = run_part(part, deps)
                outcomes.append(outcome)
                self.outcomes.append((part.stage, outcome))
        return outcomes

    def run(self, *, patience_s: float = 0.0, step_s: float = 1.0) -> None:
        """Until nothing is due; lets up to `patience_s` pass, in steps, for what is put off."""
        waited = 0.0
        while True:
            if self.step():
                continue
            if waited >= patience_s:
                return
            self.clock.advance(step_s)
            waited += step_s

    def record(self, document_id: str) -> DocumentRecord:
        with self.catalog.snapshot(self.principal) as snapshot:
            return snapshot.document(document_id)

    def status(self, document_id: str) -> DocumentStatus:
        return self.record(document_id).status


@functools.cache
def _migrated() -> bytes:
    """An empty catalog's file: migrating takes longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite3"
        catalog = SqlCatalog(f"sqlite:///{path}", clock=FakeClock())
        catalog.migrate()
        catalog.close()
        return path.read_bytes()


def make_pipeline(folder: Path, **sections: dict[str, object]) -> Pipeline:
    """An empty pipeline; `sections` are settings, as `parser={"pages_per_part": 2}`."""
    clock = FakeClock()
    (folder / "catalog.sqlite3").write_bytes(_migrated())
    settings = Settings.model_validate({"data_dir": folder, **sections})
    catalog = SqlCatalog(
        f"sqlite:///{folder / 'catalog.sqlite3'}",
        clock=clock,
        max_attempts=settings.worker.max_attempts,
        republish_after_s=settings.worker.republish_after_s,
        retry_base_s=settings.worker.retry_base_s,
    )
    tenant_id = catalog.access.ensure_tenant("default")
    return Pipeline(
        settings=settings,
        clock=clock,
        catalog=catalog,
        principal=Principal.system(tenant_id, "test"),
        store=FakeObjectStore({BUCKET: tenant_id}, settings.objects.artifacts_bucket),
        index=FakeVectorIndex(),
        embedder=FakeEmbedder(),
        parser=FakeParser(),
        queue=FakeJobQueue(),
        intake=Intake(catalog.intake, settings),
        temp_dir=folder,
    )
