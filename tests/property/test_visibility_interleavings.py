"""Replace, delete and purge against questions: 200 seeded interleavings on a real catalog.

The writer is stopped after every transaction, and questions are asked at each of these points;
while one question runs, the writer goes on between the opening of its snapshot and its search, and
between the rounds of the search. Whatever happens, a question sees exactly one generation of a
document that was visible when it began, and none of one whose deletion had returned.
"""

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core.domain.search import LegResults, SearchFilter
from core.errors import NotFound
from query.retrieval.search import RetrievalDeps, Retrieved, retrieve
from tests.fakes.vector_index import FakeVectorIndex
from tests.pipeline_harness import Pipeline, make_pipeline
from workers.upkeep import Upkeep

NUM_SEEDS = 200
NUM_STEPS = 6
_WORDS = ("one", "two", "three", "four", "five", "six")
KEYS = ("reports/a.txt", "reports/b.txt")


class BusyIndex(FakeVectorIndex):
    """Lets others work right before each search."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def search(self, *arguments: object, **options: object) -> LegResults:
        self.meanwhile()
        return super().search(*arguments, **options)  # type: ignore[arg-type]


class World:
    """A pipeline, its sweeper's purges, and what a reader may expect."""

    def __init__(self, folder: Path, seed: int, migrated: Path) -> None:
        shutil.copy(migrated, folder)  # a migration takes longer than everything else here
        self.random = random.Random(seed)
        self.index = BusyIndex()
        self.pipeline: Pipeline = make_pipeline(folder, retrieval={"candidates": 4})
        self.pipeline.index = self.index
        self.edition = 0
        self.num_flips_seen = 0
        self.upkeep = Upkeep(
            catalog=self.pipeline.catalog,
            vector_index=self.index,
            artifacts=self.pipeline.artifacts,
            clock=self.pipeline.clock,
            purge_after_s=60.0,
            retention_days=30,
        )
        for key in KEYS:
            self.put(key)
        self.pipeline.run()

    def write(self) -> None:
        """One random step of somebody who writes."""
        steps = [self._work, self._work, self._work, self._put, self._delete, self._purge]
        self.random.choice(steps)()

    def _write_some(self) -> None:
        for _ in range(self.random.randrange(3)):
            self.write()

    def put(self, key: str) -> None:
        self.edition += 1
        lines = [f"edition {self.edition} of the report, line {word}" for word in _WORDS]
        self.pipeline.put(key, "\f".join(lines))

    def _put(self) -> None:
        self.put(self.random.choice(KEYS))

    def _work(self) -> None:
        self.pipeline.step()

    def _delete(self) -> None:
        with self.pipeline.catalog.snapshot(self.pipeline.principal) as snapshot:
            records, _ = snapshot.documents()
        if records:
            record = self.random.choice(records)
            self.pipeline.store.delete(self.pipeline.principal, record.bucket, record.key)
            with suppress(NotFound):
                self.pipeline.catalog.intake.delete(
                    self.pipeline.principal, record.document_id, tombstone=False
                )

    def _purge(self) -> None:
        self.upkeep.purge_generations()
        self.upkeep.purge_content()

    def let_a_minute_pass(self) -> None:
        """Only between questions: a question is answered within the grace of dead points."""
        self.pipeline.clock.advance(61.0)

    def visible(self) -> dict[str, str]:
        """document id -> its active generation, as the catalog says now."""
        found: dict[str, str] = {}
        with self.pipeline.catalog.snapshot(self.pipeline.principal) as snapshot:
            for record in snapshot.documents()[0]:
                if record.active_version_seq is not None:
                    version = snapshot.version(record.document_id)
                    found[record.document_id] = version.generation_id
        return found

    def ask(self) -> tuple[dict[str, str], Retrieved]:
        """What was visible when the question began, and what it found."""
        expected = self.visible()
        deps = RetrievalDeps(
            index=self.index,
            embedder=self.pipeline.embedder,
            clock=self.pipeline.clock,
            settings=self.pipeline.settings.retrieval,
        )
        with self.pipeline.catalog.snapshot(self.pipeline.principal) as snapshot:
            self._write_some()
            self.index.meanwhile = self._write_some
            try:
                (found,), _ = retrieve(
                    self.pipeline.principal,
                    ["report edition line"],
                    SearchFilter(),
                    snapshot,
                    deps,
                )
            finally:
                self.index.meanwhile = lambda: None
        if self.visible() != expected:
            self.num_flips_seen += 1
        return expected, found


def generations_found(found: Retrieved) -> dict[str, set[str]]:
    seen: dict[str, set[str]] = {}
    for passage in found.passages:
        seen.setdefault(passage.document_id, set()).add(passage.generation_id)
    return seen


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    """An empty catalog with this release's schema."""
    folder = tmp_path / "template"
    folder.mkdir()
    make_pipeline(folder).catalog.close()
    return folder / "catalog.sqlite3"


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
def test_a_question_sees_one_generation_and_never_a_deleted_one(
    batch: int, tmp_path: Path, migrated: Path
) -> None:
    num_flips = num_visible = 0
    for seed in range(batch * NUM_SEEDS // 4, (batch + 1) * NUM_SEEDS // 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, seed, migrated)
        for _ in range(NUM_STEPS):
            world.write()
            if world.random.random() < 0.1:
                world.let_a_minute_pass()
            if world.random.random() < 0.3:
                expected, found = world.ask()
                seen = generations_found(found)
                assert seen == {document: {one} for document, one in expected.items()}, seed
                num_visible += len(expected)
        num_flips += world.num_flips_seen
        world.pipeline.catalog.close()
    # The interleavings must have happened, or this proves nothing.
    assert num_flips >= 5
    assert num_visible >= 60
