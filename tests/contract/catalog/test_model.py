"""Random interleavings of everything that changes visibility, against a model that fits in a dict.

A snapshot opened at any moment must show, for as long as it is open, exactly what the model showed
at that moment: never two generations of a document, never none while one is active, never a deleted
one. Statuses, queue depth and what may be purged are compared after every step.
"""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import DocumentStatus, LeasedPart, Stage
from core.errors import Conflict, LeaseLost, NotFound
from core.ports.catalog import Snapshot
from tests.contract.catalog.driver import LEASE_S, NUM_CHUNKS, RESULTS, Driver, sha256_of
from tests.fakes.clock import FakeClock

NUM_STEPS = 150
KEYS = ("hr/a.pdf", "hr/b.pdf", "c.pdf")
CONTENTS = ("one", "two", "three")


@dataclass
class Generation:
    """What the model knows of one version's work."""

    generation_id: str
    document_id: str
    job_id: str
    content: str
    is_dead: bool = False
    was_active: bool = False
    has_started: bool = False
    failure: str | None = None
    stages: dict[Stage, str] = field(default_factory=lambda: {Stage.PARSE: "waiting"})

    @property
    def num_open(self) -> int:
        is_worked_on = not self.is_dead and self.failure is None
        return sum(state != "done" for state in self.stages.values()) if is_worked_on else 0


@dataclass
class Document:
    newest: Generation
    active: Generation | None = None
    is_deleted: bool = False

    @property
    def status(self) -> DocumentStatus:
        if self.newest.failure:
            return DocumentStatus(self.newest.failure)
        if self.active and self.active.content == self.newest.content and self.newest.was_active:
            return DocumentStatus.READY
        is_started = self.newest.has_started
        return DocumentStatus.PROCESSING if is_started else DocumentStatus.QUEUED


@dataclass
class Lease:
    part: LeasedPart
    generation: Generation
    is_current: bool = True


@dataclass
class OpenSnapshot:
    manager: AbstractContextManager[Snapshot]
    snapshot: Snapshot
    expected: set[str]


class Simulation:
    """Draws actions by weight; everything random comes from `seed`."""

    def __init__(self, url: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = FakeClock()
        self.catalog = SqlCatalog(url, clock=self.clock, max_attempts=1_000)
        self.principal = Principal.system(self.catalog.access.ensure_tenant("default"), "test")
        self.driver = Driver(self.catalog, self.principal)
        self.documents: dict[str, Document] = {}
        self.generations: dict[str, Generation] = {}
        self.leases: list[Lease] = []
        self.snapshots: list[OpenSnapshot] = []
        self.history: list[str] = []
        self.num_flips = 0

    def run(self, num_steps: int) -> None:
        weights = {
            self.accept: 3, self.work_through: 12, self.lease: 4, self.finish: 4, self.fail: 1,
            self.delete: 1, self.retry: 2, self.time_passes: 2, self.purge: 1,
            self.open_snapshot: 3, self.close_snapshot: 2,
        }  # fmt: skip
        actions = self.random.choices(list(weights), list(weights.values()), k=num_steps)
        for action in actions:
            self.history.append(action.__name__)
            action()
            self.an_open_snapshot_never_changes()
            self.a_new_snapshot_shows_the_model()
            self.counts_show_the_model()
            self.what_is_visible_is_live()

    def close(self) -> None:
        for one in self.snapshots:
            one.manager.__exit__(None, None, None)
        self.catalog.close()

    def visible(self) -> set[str]:
        return {
            document.active.generation_id
            for document in self.documents.values()
            if document.active and not document.is_deleted
        }

    # -------------------------------------------------------------------------- intake

    def accept(self) -> None:
        key, content = self.random.choice(KEYS), self.random.choice(CONTENTS)
        before = self.documents.get(key)
        accepted = self.driver.accept(key, content)
        is_same = before is not None and not before.is_deleted and before.newest.content == content
        assert accepted.is_new is not is_same
        if not accepted.is_new:
            return
        new = Generation(accepted.generation_id, accepted.document_id, accepted.job_id, content)
        self.generations[new.generation_id] = new
        for old in self.generations.values():
            if old.document_id == new.document_id and old is not new and not old.was_active:
                old.is_dead = True
        active = before.active if before and not before.is_deleted else None
        self.documents[key] = Document(new, active)

    def delete(self) -> None:
        key = self.random.choice(KEYS)
        document = self.documents.get(key)
        document_id = document.newest.document_id if document else "doc_" + "0" * 32
        try:
            self.catalog.intake.delete(self.principal, document_id, tombstone=False)
        except NotFound:
            assert document is None or document.is_deleted
            return
        assert document is not None
        assert not document.is_deleted
        document.is_deleted = True
        document.active = None
        for generation in self.generations.values():
            if generation.document_id == document_id:
                generation.is_dead = True

    # ---------------------------------------------------------------------------- work

    def lease(self) -> None:
        waiting = [(g, part) for g, parts in self.driver.announced.items() for part in parts]
        if waiting:
            self._lease(*self.random.choice(waiting))

    def _lease(self, generation_id: str, part_id: str) -> None:
        self.driver.announced[generation_id].remove(part_id)
        generation = self.generations[generation_id]
        part = self.catalog.parts.lease(part_id, owner="worker", lease_s=LEASE_S)
        is_wanted = not generation.is_dead and generation.failure is None
        is_held = "waiting" not in generation.stages.values()
        assert (part is not None) is (is_wanted and not is_held)
        if part is not None:
            generation.stages[part.stage] = "leased"
            generation.has_started = True
            self.leases.append(Lease(part, generation))

    def work_through(self) -> None:
        """One worker takes a document through several stages before anybody else acts."""
        waiting = [
            generation_id
            for generation_id, parts in self.driver.announced.items()
            if parts and not self.generations[generation_id].is_dead
        ]
        if not waiting:
            return
        generation_id = self.random.choice(waiting)
        for _ in range(self.random.randint(1, 5)):
            num_leases = len(self.leases)
            if self.driver.announced[generation_id]:
                self._lease(generation_id, self.driver.announced[generation_id][0])
            if len(self.leases) > num_leases:
                self._finish(self.leases.pop())

    def finish(self) -> None:
        if self.leases:
            self._finish(self.leases.pop(self.random.randrange(len(self.leases))))

    def _finish(self, lease: Lease) -> None:
        part, generation = lease.part, lease.generation
        is_good = lease.is_current and not generation.is_dead and generation.failure is None
        try:
            is_done = self._work_on(part, generation)
        except LeaseLost:
            assert not is_good
            return
        assert is_good or not is_done

    def _work_on(self, part: LeasedPart, generation: Generation) -> bool:
        parts = self.catalog.parts
        document = self.documents[part.key]
        if part.stage is Stage.PARSE:
            content = generation.content
            closed = parts.set_content(part, sha256=sha256_of(content), etag=f"etag-{content}")
            is_active = document.active is not None and document.active.content == content
            assert closed == (document.active.generation_id if is_active else None)  # type: ignore[union-attr]
            if closed is not None:
                generation.is_dead = generation.was_active = True
                return True
        if part.stage is Stage.ACTIVATE:
            is_shown = parts.activate(part, num_points=NUM_CHUNKS)
            if is_shown:
                generation.stages[part.stage] = "done"
                self.num_flips += 1
                if document.active:
                    document.active.is_dead = True
                document.active = generation
                generation.was_active = True
            return is_shown
        self.driver.complete(part)
        generation.stages[part.stage] = "done"
        generation.stages[RESULTS[part.stage].next_stage[0].stage] = "waiting"
        return True

    def fail(self) -> None:
        if not self.leases:
            return
        lease = self.leases.pop(self.random.randrange(len(self.leases)))
        generation = lease.generation
        is_good = lease.is_current and not generation.is_dead and generation.failure is None
        try:
            self.catalog.parts.fail(
                lease.part, code="corrupt", message="m", hint=None, is_final=True
            )
        except LeaseLost:
            assert not is_good
            return
        assert is_good
        generation.failure = "corrupt"
        generation.stages[lease.part.stage] = "failed"

    def retry(self) -> None:
        failed = [one for one in self.generations.values() if one.failure]
        candidates = failed or list(self.generations.values())
        if not candidates:
            return
        generation = self.random.choice(candidates)
        is_newest = any(d.newest is generation for d in self.documents.values())
        try:
            self.catalog.parts.retry(self.principal, generation.job_id)
        except (Conflict, NotFound):
            assert generation.failure is None or generation.is_dead or not is_newest
            return
        assert generation.failure is not None
        assert not generation.is_dead
        self.driver.listen(generation.generation_id)
        generation.failure = None
        if Stage.INDEX in generation.stages:
            generation.stages.pop(Stage.ACTIVATE, None)
            generation.stages[Stage.INDEX] = "waiting"
        for stage, state in generation.stages.items():
            if state == "failed":
                generation.stages[stage] = "waiting"
        done = [state for state in generation.stages.values() if state == "done"]
        generation.has_started = bool(done)

    def time_passes(self) -> None:
        """Workers whose lease ran out are lost; the sweeper announces what is due."""
        self.clock.advance(self.random.choice([1.0, LEASE_S, 3_600.0]))
        expired = [lease for lease in self.leases if lease.is_current
                   and lease.part.expires_at <= self.clock.now()]  # fmt: skip
        for lease in expired:
            lease.is_current = False
            if lease.generation.stages.get(lease.part.stage) == "leased":
                lease.generation.stages[lease.part.stage] = "waiting"
                done = [s for s in lease.generation.stages.values() if s == "done"]
                lease.generation.has_started = bool(done)
        self.catalog.parts.sweep()
        messages = self.catalog.parts.take_outbox(1_000)
        self.catalog.parts.mark_sent([message.message_id for message in messages])
        for message in messages:
            (owner,) = [
                generation.generation_id
                for generation in self.generations.values()
                if message.part_id in self._parts_of(generation)
            ]
            if message.part_id not in self.driver.announced[owner]:
                self.driver.announced[owner].append(message.part_id)

    def _parts_of(self, generation: Generation) -> set[str]:
        rows = self.catalog._db.read(
            lambda tx: tx.exec_driver_sql(
                f"SELECT part_id FROM parts WHERE generation_id = '{generation.generation_id}'"
            ).all()
        )
        return {row.part_id for row in rows}

    def purge(self) -> None:
        for dead in self.catalog.operations.dead_generations(older_than_s=0.0, limit=100):
            generation = self.generations[dead.generation_id]
            assert generation.is_dead or generation.failure is not None
            self.catalog.operations.mark_purged(dead.generation_id)
            if generation.is_dead:
                self.driver.announced.pop(dead.generation_id, None)

    # ----------------------------------------------------------------------- snapshots

    def open_snapshot(self) -> None:
        if len(self.snapshots) == 3:
            return
        manager = self.catalog.snapshot(self.principal)
        self.snapshots.append(OpenSnapshot(manager, manager.__enter__(), self.visible()))

    def close_snapshot(self) -> None:
        if not self.snapshots:
            return
        one = self.snapshots.pop(self.random.randrange(len(self.snapshots)))
        one.manager.__exit__(None, None, None)

    # ---------------------------------------------------------------------- invariants

    def an_open_snapshot_never_changes(self) -> None:
        for one in self.snapshots:
            assert set(one.snapshot.active(list(self.generations))) == one.expected

    def a_new_snapshot_shows_the_model(self) -> None:
        living = {k: d for k, d in self.documents.items() if not d.is_deleted}
        with self.catalog.snapshot(self.principal) as snapshot:
            assert set(snapshot.active(list(self.generations))) == self.visible()
            records, _ = snapshot.documents()
        assert {record.key: record.status for record in records} == {
            key: document.status for key, document in living.items()
        }

    def counts_show_the_model(self) -> None:
        counts = self.catalog.operations.counts()
        expected = sum(generation.num_open for generation in self.generations.values())
        assert counts.queue_depth == expected
        assert counts.num_chunks_active == NUM_CHUNKS * len(self.visible())

    def what_is_visible_is_live(self) -> None:
        everything = list(self.generations.values())
        for generation in self.random.sample(everything, min(3, len(everything))):
            is_live = self.catalog.operations.is_live_generation(
                generation.document_id, generation.generation_id
            )
            if generation.is_dead:
                assert not is_live
            elif generation.failure is None:
                assert is_live


def simulate(url: str, seed: int) -> int:
    """One run of the simulation; returns how often a generation was flipped to."""
    simulation = Simulation(url, seed)
    try:
        simulation.run(NUM_STEPS)
    except Exception as error:
        error.add_note(f"seed {seed}: " + " ".join(simulation.history))
        raise
    finally:
        simulation.close()
    return simulation.num_flips


@pytest.mark.parametrize(
    ("catalog_url", "seed"),
    [*(("sqlite", seed) for seed in range(4)), *(("postgresql", seed) for seed in (4, 5))],
    indirect=["catalog_url"],
)
def test_any_interleaving_shows_one_generation_or_none(catalog_url: str, seed: int) -> None:
    num_flips = simulate(catalog_url, seed)
    assert num_flips >= 5, "this interleaving hardly ever reaches a flip: it proves nothing"
