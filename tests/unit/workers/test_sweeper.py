"""The sweeper's schedules on a real catalog: one leads, and everything comes round."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from core.adapters.clock import SystemClock
from core.domain.documents import DocumentStatus
from core.factory import Adapters
from core.ports.clock import Clock
from tests.pipeline_harness import BUCKET, Pipeline, make_pipeline
from workers.sweeper import LIVENESS_FILE, Sweeper


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = make_pipeline(tmp_path, sweeper={"leadership_s": 15.0})
    yield made
    made.catalog.close()


def sweeper_of(pipeline: Pipeline, clock: Clock | None = None) -> Sweeper:
    adapters = SimpleNamespace(
        catalog=pipeline.catalog,
        object_store=pipeline.store,
        artifacts=pipeline.artifacts,
        vector_index=pipeline.index,
        job_queue=pipeline.queue,
        clock=clock or pipeline.clock,
        tenant_ids={BUCKET: pipeline.principal.tenant_id},
    )
    return Sweeper(pipeline.settings, cast("Adapters", adapters))


def put(pipeline: Pipeline, key: str, text: str = "some text") -> None:
    pipeline.store.put(pipeline.principal, BUCKET, key, text.encode())


def tick(pipeline: Pipeline, sweeper: Sweeper, seconds: float = 0.25) -> None:
    """Every thread's round, then time passes."""
    sweeper.lead()
    for schedule in (sweeper.scout, sweeper.caretaker, sweeper.courier):
        schedule.tick(sweeper.may_go_on)
    pipeline.clock.advance(seconds)


def test_an_object_in_the_bucket_is_announced_to_a_worker(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    put(pipeline, "a.pdf")
    tick(pipeline, sweeper)
    assert len(pipeline.queue.take()) == 1
    tick(pipeline, sweeper)
    assert pipeline.queue.take() == []


def test_a_hint_is_faster_than_the_listing(pipeline: Pipeline) -> None:
    object.__setattr__(pipeline.settings.objects, "reconcile_s", 300.0)
    sweeper = sweeper_of(pipeline)
    tick(pipeline, sweeper)
    put(pipeline, "a.pdf")
    tick(pipeline, sweeper)
    assert pipeline.queue.take() == []
    pipeline.catalog.intake.add_hint(pipeline.principal.tenant_id, BUCKET, "a.pdf")
    tick(pipeline, sweeper)
    assert len(pipeline.queue.take()) == 1


def test_a_hint_about_a_deleted_object_brings_the_listings_forward(pipeline: Pipeline) -> None:
    object.__setattr__(pipeline.settings.objects, "reconcile_s", 300.0)
    sweeper = sweeper_of(pipeline)
    put(pipeline, "a.pdf")
    tick(pipeline, sweeper)
    (found,) = pipeline.catalog.intake.known_objects(pipeline.principal, BUCKET)
    pipeline.store.delete(pipeline.principal, BUCKET, "a.pdf")
    pipeline.catalog.intake.add_hint(pipeline.principal.tenant_id, BUCKET, "a.pdf")
    for _ in range(20):  # five seconds
        tick(pipeline, sweeper)
    (found,) = pipeline.catalog.intake.known_objects(pipeline.principal, BUCKET)
    assert found.is_deleted


def test_a_lost_message_is_announced_again(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    put(pipeline, "a.pdf")
    tick(pipeline, sweeper)
    (lost,) = pipeline.queue.take()
    tick(pipeline, sweeper, pipeline.settings.worker.republish_after_s + 1)
    tick(pipeline, sweeper)
    assert pipeline.queue.take() == [lost]


def test_a_dead_workers_part_is_announced_again(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    put(pipeline, "a.pdf")
    tick(pipeline, sweeper)
    (part_id,) = pipeline.queue.take()
    part = pipeline.lease(part_id, owner="about to die")
    assert part is not None
    tick(pipeline, sweeper, pipeline.settings.worker.lease_s + 1)
    tick(pipeline, sweeper)
    assert pipeline.queue.take() == [part_id]
    pipeline.run(patience_s=40)
    assert pipeline.status(part.document_id) is DocumentStatus.READY


def test_a_broker_that_is_down_loses_nothing(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    pipeline.queue.is_down = True
    put(pipeline, "a.pdf")
    for _ in range(8):
        tick(pipeline, sweeper)
    pipeline.queue.is_down = False
    for _ in range(400):
        tick(pipeline, sweeper)
    assert len(set(pipeline.queue.take())) == 1


def test_an_object_store_that_is_down_stops_only_what_needs_it(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    pipeline.put("a.pdf", "text")
    pipeline.store.is_down = True
    tick(pipeline, sweeper)
    assert len(pipeline.queue.take()) == 1
    pipeline.store.is_down = False
    put(pipeline, "b.pdf")
    for _ in range(40):
        tick(pipeline, sweeper)
    assert len(set(pipeline.queue.take())) == 1


def test_only_one_sweeper_leads_and_another_takes_over(pipeline: Pipeline) -> None:
    first, second = sweeper_of(pipeline), sweeper_of(pipeline)
    second._owner = "another:1"
    assert first.lead()
    assert not second.lead()
    put(pipeline, "a.pdf")
    for schedule in (second.caretaker, second.courier):
        schedule.tick(second.may_go_on)
    assert pipeline.queue.take() == []
    assert "another sweeper leads" in second.describe()
    pipeline.clock.advance(pipeline.settings.sweeper.leadership_s + 1)
    assert second.lead()
    assert not first.lead()


def test_a_sweeper_that_stops_is_followed_at_once(pipeline: Pipeline) -> None:
    first, second = sweeper_of(pipeline), sweeper_of(pipeline)
    second._owner = "another:1"
    assert first.lead()
    assert not second.lead()
    second.resign()  # not its to give
    assert not second.lead()
    first.resign()
    assert second.lead()


def test_a_stopped_reconcile_is_visible(pipeline: Pipeline) -> None:
    sweeper = sweeper_of(pipeline)
    for number in range(30):
        put(pipeline, f"{number}.pdf", str(number))
    tick(pipeline, sweeper)
    assert sweeper.describe() == "sweeping"
    for number in range(30):
        pipeline.store.delete(pipeline.principal, BUCKET, f"{number}.pdf")
    for _ in range(40):
        tick(pipeline, sweeper)
    assert "30 documents would be deleted" in sweeper.describe()
    put(pipeline, "0.pdf", "0")
    for _ in range(40):
        tick(pipeline, sweeper)
    living = [
        found
        for found in pipeline.catalog.intake.known_objects(pipeline.principal, BUCKET)
        if not found.is_deleted
    ]
    assert len(living) == 30


def test_the_threads_start_work_and_stop(pipeline: Pipeline) -> None:
    """The real loop, once: an object is announced, the process is seen, everything ends."""
    sweeper = sweeper_of(pipeline, SystemClock())
    put(pipeline, "a.pdf")
    announced = threading.Event()
    publish = pipeline.queue.publish

    def tell(queue: object, part_id: str) -> None:
        publish(queue, part_id)  # type: ignore[arg-type]
        announced.set()

    pipeline.queue.publish = tell  # type: ignore[method-assign]
    stop = threading.Event()
    thread = threading.Thread(target=sweeper.run, args=(stop,), daemon=True)
    thread.start()
    is_announced = announced.wait(20)
    stop.set()
    thread.join(20)
    assert is_announced
    assert not thread.is_alive()
    (beat,) = pipeline.catalog.operations.heartbeats(max_age_s=60)
    assert beat.role == "sweeper"
    assert (pipeline.settings.data_dir / LIVENESS_FILE).exists()
