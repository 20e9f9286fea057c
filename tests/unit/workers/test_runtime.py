"""A pool child's part: leased, worked on, and what follows is announced at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.domain.documents import DocumentStatus
from core.errors import CatalogUnavailable
from core.factory import Adapters
from ingest.pipeline import Outcome
from tests.builders_pdf import plain
from tests.pipeline_harness import Pipeline, make_pipeline
from workers.runtime import WorkerRuntime


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = make_pipeline(tmp_path)
    yield made
    made.catalog.close()


@pytest.fixture
def runtime(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerRuntime]:
    """A runtime whose adapters are the harness's fakes."""
    monkeypatch.setattr(Adapters, "catalog", property(lambda _self: pipeline.catalog))
    monkeypatch.setattr(Adapters, "clock", property(lambda _self: pipeline.clock))
    monkeypatch.setattr(Adapters, "job_queue", property(lambda _self: pipeline.queue))
    made = WorkerRuntime(pipeline.settings)
    made.__dict__["_deps"] = pipeline.deps
    yield made
    made.close()


def test_the_next_stage_is_announced_without_the_sweeper(
    pipeline: Pipeline, runtime: WorkerRuntime
) -> None:
    accepted = pipeline.put("a.pdf", "some text")
    waiting = pipeline.announced()
    num_parts = 0
    while waiting:
        assert runtime.run_part(waiting.pop()) is Outcome.DONE
        num_parts += 1
        waiting += pipeline.queue.take()
    assert num_parts == 5
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY
    assert runtime.doing() is None


def test_a_message_about_nothing_is_nothing(pipeline: Pipeline, runtime: WorkerRuntime) -> None:
    assert runtime.run_part("part_never_was") is None
    accepted = pipeline.put("a.pdf", "some text")
    (part_id,) = pipeline.announced()
    pipeline.lease(part_id, owner="another worker")
    assert runtime.run_part(part_id) is None
    assert pipeline.status(accepted.document_id) is DocumentStatus.PROCESSING


def test_a_broker_that_is_down_after_the_part_loses_nothing(
    pipeline: Pipeline, runtime: WorkerRuntime
) -> None:
    accepted = pipeline.put("a.pdf", "some text")
    (part_id,) = pipeline.announced()
    pipeline.queue.is_down = True
    assert runtime.run_part(part_id) is None
    pipeline.queue.is_down = False
    pipeline.run(patience_s=120, step_s=5.0)
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY


def test_a_catalog_that_is_down_does_not_end_the_child(
    pipeline: Pipeline, runtime: WorkerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise CatalogUnavailable("down")

    monkeypatch.setattr(pipeline.catalog.parts, "lease", fail)
    assert runtime.run_part("part_1") is None


def test_what_it_does_is_known_while_it_does_it(pipeline: Pipeline, runtime: WorkerRuntime) -> None:
    accepted = pipeline.put("a.pdf", "some text")
    seen: list[str | None] = []
    pipeline.parser.on_parse = lambda _first, _last: seen.append(runtime.doing())
    (part_id,) = pipeline.announced()
    runtime.run_part(part_id)
    assert seen == [accepted.document_id]


def test_the_parsers_child_ends_when_nothing_comes(
    pipeline: Pipeline, runtime: WorkerRuntime, tmp_path: Path
) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(plain("some text"))
    parser = runtime._parser

    def has_child() -> bool:
        return parser.child_pid is not None

    parser.parse(file, 1, 1)
    pipeline.clock.advance(10)
    runtime.rest()
    assert has_child()
    pipeline.put("b.pdf", "some text")

    def rest_long_after_the_last_part(_first: int, _last: int) -> None:
        pipeline.clock.advance(60)
        runtime.rest()

    pipeline.parser.on_parse = rest_long_after_the_last_part
    runtime.run_part(pipeline.announced()[0])
    assert has_child()
    pipeline.clock.advance(30)
    runtime.rest()
    assert not has_child()
    assert parser.parse(file, 1, 1).pages  # by another one
