"""Late, doubled, interrupted and stopped work: the catalog's lease decides, and nothing is lost."""

import itertools

import pytest

from core.domain.documents import DocumentStatus, Stage
from core.errors import CatalogUnavailable
from ingest.intake import Intake
from ingest.pipeline import Outcome, run_part
from tests.pipeline_harness import Pipeline

PAGES = "\f".join(f"Page {number} speaks of valves." for number in range(1, 31))


class Killed(BaseException):
    """Ends a stage the way SIGKILL does: nothing of ours runs afterwards."""


def run_until(pipeline: Pipeline, stage: Stage) -> str:
    """Everything before that stage; returns the id of its first part. Announcements of its other
    parts are lost on the way."""
    while True:
        for part_id in pipeline.announced():
            part = pipeline.lease(part_id)
            assert part is not None
            if part.stage is stage:
                pipeline.catalog.parts.release(
                    part, retry_at=pipeline.clock.now(), code="test", message="handed back"
                )
                return part_id
            run_part(part, pipeline.deps)


def assert_ready(pipeline: Pipeline, document_id: str, generation_id: str) -> None:
    record = pipeline.record(document_id)
    assert record.status is DocumentStatus.READY
    assert record.pages_done == record.pages_total
    assert record.num_chunks == pipeline.index.count(pipeline.principal, document_id, generation_id)


@pytest.mark.parametrize("stage", list(Stage))
def test_the_same_part_delivered_five_times_is_worked_on_once(
    pipeline: Pipeline, stage: Stage
) -> None:
    accepted = pipeline.put("a.pdf", PAGES)
    part_id = run_until(pipeline, stage)
    leases = [pipeline.lease(part_id, owner=f"worker {number}") for number in range(5)]
    (part,) = [lease for lease in leases if lease is not None]
    assert run_part(part, pipeline.deps) is Outcome.DONE
    assert pipeline.lease(part_id) is None
    pipeline.run(patience_s=pipeline.settings.worker.republish_after_s)
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)


@pytest.mark.parametrize("stage", list(Stage))
def test_a_late_writer_is_fenced(pipeline: Pipeline, stage: Stage) -> None:
    """Frozen past its lease; another worker does the part; then the first one wakes up."""
    accepted = pipeline.put("a.pdf", PAGES)
    part_id = run_until(pipeline, stage)
    frozen = pipeline.lease(part_id, owner="frozen")
    assert frozen is not None
    pipeline.clock.advance(pipeline.settings.worker.lease_s + 1)
    pipeline.run()
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)
    assert run_part(frozen, pipeline.deps) is Outcome.LEASE_LOST
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)


KILL_POINTS = [
    "store.head",
    "store.download",
    "store.put",
    "store.list",
    "parser.parse",
    "embedder.embed_passages",
    "index.ensure",
    "index.upsert",
    "index.count",
    "catalog.parts.set_content",
    "catalog.parts.complete",
    "catalog.parts.activate",
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("place", KILL_POINTS)
def test_a_worker_killed_anywhere_loses_nothing(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, place: str, moment: str
) -> None:
    accepted = pipeline.put("a.pdf", PAGES)
    kills = kill_once(pipeline, monkeypatch, place, moment)
    for _ in range(3):
        try:
            pipeline.run()
        except Killed:
            pipeline.clock.advance(pipeline.settings.worker.lease_s + 1)
    assert kills == [place], "the fault never fired"
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)


def kill_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, place: str, moment: str
) -> list[str]:
    *path, name = place.split(".")
    target = pipeline
    for step in path:
        target = getattr(target, step)
    original = getattr(target, name)
    kills: list[str] = []

    def call(*args: object, **kwargs: object) -> object:
        if kills:
            return original(*args, **kwargs)
        kills.append(place)
        if moment == "after":
            original(*args, **kwargs)
        raise Killed

    monkeypatch.setattr(target, name, call)
    return kills


def test_a_document_deleted_while_indexed_leaves_no_points(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", PAGES)
    part_id = run_until(pipeline, Stage.INDEX)
    part = pipeline.lease(part_id)
    assert part is not None

    def delete(_points: object) -> None:
        pipeline.index.before_upsert = lambda _points: None
        pipeline.catalog.intake.delete(pipeline.principal, accepted.document_id, tombstone=False)

    pipeline.index.before_upsert = delete
    assert run_part(part, pipeline.deps) is Outcome.LEASE_LOST
    assert list(pipeline.index.generations(pipeline.principal)) == []


def test_a_document_replaced_while_it_is_worked_on_stops_the_old_version(
    pipeline: Pipeline,
) -> None:
    old = pipeline.put("a.pdf", PAGES)
    part_id = run_until(pipeline, Stage.EMBED)
    part = pipeline.lease(part_id)
    assert part is not None
    new = pipeline.put("a.pdf", PAGES + "\fone page more")
    assert run_part(part, pipeline.deps) is Outcome.LEASE_LOST
    pipeline.run()
    with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
        assert set(snapshot.active([old.generation_id, new.generation_id])) == {new.generation_id}
    assert_ready(pipeline, new.document_id, new.generation_id)


def test_work_renews_its_lease(pipeline: Pipeline) -> None:
    """Pages that take longer in all than a lease lasts, each less than a quarter of it."""
    accepted = pipeline.put("a.pdf", "one\ftwo\fthree\ffour")
    lease_s = pipeline.settings.worker.lease_s

    def slow_parse(_first: int, _last: int) -> None:
        pipeline.clock.advance(lease_s * 0.9)

    pipeline.parser.on_parse = slow_parse
    pipeline.step()
    assert pipeline.outcomes == [("parse", Outcome.DONE)]
    assert pipeline.status(accepted.document_id) is DocumentStatus.PROCESSING


def test_a_stopping_worker_keeps_the_pages_it_has(pipeline: Pipeline) -> None:
    """Told to stop in the middle of a part of 32 pages: what is parsed stays, the rest is a new
    part."""
    object.__setattr__(pipeline.settings.parser, "pages_per_part", 32)
    pipeline.intake = Intake(pipeline.catalog.intake, pipeline.settings)
    accepted = pipeline.put("a.pdf", PAGES)
    stopping = itertools.chain([False], itertools.repeat(True))
    pipeline.must_stop = lambda: next(stopping)
    pipeline.step()
    assert pipeline.outcomes == [("parse", Outcome.DONE)]
    assert 0 < pipeline.record(accepted.document_id).pages_done < 30
    pipeline.must_stop = lambda: False
    pipeline.run()
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)
    assert sorted(pipeline.parser.parsed) == list(range(1, 31))


def test_a_part_that_runs_too_long_splits_itself(pipeline: Pipeline) -> None:
    object.__setattr__(pipeline.settings.parser, "pages_per_part", 32)
    pipeline.intake = Intake(pipeline.catalog.intake, pipeline.settings)
    accepted = pipeline.put("a.pdf", PAGES)
    pipeline.parser.on_parse = lambda _first, _last: pipeline.clock.advance(50)
    pipeline.run()
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)
    assert [stage for stage, _ in pipeline.outcomes].count("parse") == 2  # two of 8 pages in each


def test_a_stopping_worker_hands_back_what_it_cannot_split(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", PAGES)
    part_id = run_until(pipeline, Stage.EMBED)
    pipeline.must_stop = lambda: True
    pipeline.step()
    assert pipeline.outcomes[-1] == ("embed", Outcome.HANDED_BACK)
    again = pipeline.lease(part_id)
    assert again is not None
    assert again.attempt == 1, "being stopped is no failed attempt"
    pipeline.must_stop = lambda: False
    assert run_part(again, pipeline.deps) is Outcome.DONE
    pipeline.run(patience_s=pipeline.settings.worker.republish_after_s)
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)


def test_a_catalog_that_is_gone_leaves_the_part_to_its_lease(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = pipeline.put("a.pdf", PAGES)
    (part_id,) = pipeline.announced()
    part = pipeline.lease(part_id)
    assert part is not None

    def fail(*_args: object, **_kwargs: object) -> None:
        raise CatalogUnavailable("gone")

    with monkeypatch.context() as gone:
        gone.setattr(pipeline.catalog.parts, "complete", fail)
        gone.setattr(pipeline.catalog.parts, "release", fail)
        with pytest.raises(CatalogUnavailable):
            run_part(part, pipeline.deps)
    assert pipeline.announced() == []
    pipeline.clock.advance(pipeline.settings.worker.lease_s + 1)
    pipeline.run()
    assert_ready(pipeline, accepted.document_id, accepted.generation_id)
