"""What is dead goes, what lives stays, and the lexical values follow the documents' lengths."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.domain.access import Principal
from core.domain.documents import Accepted
from core.ids import generation_id
from tests.pipeline_harness import BUCKET, Pipeline, make_pipeline
from workers.upkeep import Upkeep

PURGE_AFTER_S = 60.0
DAY_S = 86_400.0


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    made = make_pipeline(tmp_path)
    yield made
    made.catalog.close()


@pytest.fixture
def upkeep(pipeline: Pipeline) -> Upkeep:
    return Upkeep(
        catalog=pipeline.catalog,
        vector_index=pipeline.index,
        artifacts=pipeline.artifacts,
        clock=pipeline.clock,
        purge_after_s=PURGE_AFTER_S,
        retention_days=30,
    )


def ready(pipeline: Pipeline, key: str, text: str) -> Accepted:
    accepted = pipeline.put(key, text)
    pipeline.run()
    return accepted


def has_points(pipeline: Pipeline, accepted: Accepted) -> bool:
    return (
        pipeline.index.count(pipeline.principal, accepted.document_id, accepted.generation_id) > 0
    )


def test_a_superseded_generation_outlives_running_questions(
    pipeline: Pipeline, upkeep: Upkeep
) -> None:
    old = ready(pipeline, "a.pdf", "old words")
    new = ready(pipeline, "a.pdf", "new words")
    pipeline.clock.advance(PURGE_AFTER_S - 1)
    assert upkeep.purge_generations() == 0
    assert has_points(pipeline, old)
    pipeline.clock.advance(2)
    assert upkeep.purge_generations() == 1
    assert not has_points(pipeline, old)
    assert has_points(pipeline, new)
    assert upkeep.purge_generations() == 0


def test_a_deleted_document_loses_points_bytes_and_artifacts(
    pipeline: Pipeline, upkeep: Upkeep
) -> None:
    gone = ready(pipeline, "a.pdf", "secret words")
    kept = ready(pipeline, "b.pdf", "other words")
    pipeline.catalog.intake.delete(pipeline.principal, gone.document_id, tombstone=False)
    pipeline.clock.advance(PURGE_AFTER_S + 1)
    upkeep.purge_generations()
    upkeep.purge_content()
    assert not has_points(pipeline, gone)
    assert has_points(pipeline, kept)
    hashes = {key.split("/")[1] for key in pipeline.store.keys(pipeline.store.artifacts_bucket)}
    assert hashes == {pipeline.record(kept.document_id).sha256}


def test_superseded_bytes_are_kept_as_long_as_promised(pipeline: Pipeline, upkeep: Upkeep) -> None:
    ready(pipeline, "a.pdf", "old words")
    old_keys = set(pipeline.store.keys(pipeline.store.artifacts_bucket))
    ready(pipeline, "a.pdf", "new words")
    pipeline.clock.advance(29 * DAY_S)
    upkeep.purge_content()
    assert old_keys <= set(pipeline.store.keys(pipeline.store.artifacts_bucket))
    pipeline.clock.advance(2 * DAY_S)
    upkeep.purge_content()
    assert not old_keys & set(pipeline.store.keys(pipeline.store.artifacts_bucket))


def test_bytes_that_another_document_has_stay(pipeline: Pipeline, upkeep: Upkeep) -> None:
    gone = ready(pipeline, "a.pdf", "shared words")
    kept = ready(pipeline, "b.pdf", "shared words")
    pipeline.catalog.intake.delete(pipeline.principal, gone.document_id, tombstone=False)
    pipeline.clock.advance(40 * DAY_S)
    upkeep.purge_content()
    upkeep.purge_generations()
    assert pipeline.store.keys(pipeline.store.artifacts_bucket)
    assert has_points(pipeline, kept)


def stray_points(pipeline: Pipeline, accepted: Accepted) -> str:
    """Points of a generation that nobody made: what a worker wrote that was frozen past the
    purge."""
    stray = generation_id(accepted.document_id, 99, "x")
    kept = pipeline.index.points[pipeline.principal.tenant_id]
    point = next(iter(kept.values()))
    kept["stray"] = replace(point, point_id="stray", generation_id=stray)
    return stray


def test_orphans_are_removed_after_a_second_look(pipeline: Pipeline, upkeep: Upkeep) -> None:
    accepted = ready(pipeline, "a.pdf", "some words")
    stray = stray_points(pipeline, accepted)
    assert upkeep.find_orphans() == 1
    assert upkeep.remove_orphans() == 0
    pipeline.clock.advance(PURGE_AFTER_S)
    assert upkeep.remove_orphans() == 1
    left = set(pipeline.index.generations(pipeline.principal))
    assert left == {(accepted.document_id, accepted.generation_id)}
    assert stray not in {generation for _, generation in left}


def test_points_of_work_in_progress_are_no_orphans(pipeline: Pipeline, upkeep: Upkeep) -> None:
    accepted = pipeline.put("a.pdf", "some words")
    while not has_points(pipeline, accepted):
        pipeline.step()
    assert upkeep.find_orphans() == 0
    pipeline.run()
    assert upkeep.find_orphans() == 0


def test_a_superseded_generation_is_left_to_the_purge(pipeline: Pipeline, upkeep: Upkeep) -> None:
    """Just replaced: a suspect, but questions may still run on it."""
    old = ready(pipeline, "a.pdf", "old words")
    ready(pipeline, "a.pdf", "new words")
    upkeep.find_orphans()
    pipeline.clock.advance(PURGE_AFTER_S / 2)
    assert upkeep.remove_orphans() == 0
    assert has_points(pipeline, old)


def test_lexical_values_are_rewritten_when_chunks_change_their_length(
    pipeline: Pipeline, upkeep: Upkeep
) -> None:
    ready(pipeline, "a.pdf", "short")
    before = pipeline.index.manifest()
    assert before is not None
    assert upkeep.refresh_lexical() == 0
    long_line = " ".join(f"word{number}" for number in range(40))
    ready(pipeline, "b.pdf", "\f".join([long_line] * 5))
    num_points = len(pipeline.index.points[pipeline.principal.tenant_id])
    assert upkeep.refresh_lexical() == num_points
    after = pipeline.index.manifest()
    assert after is not None
    assert after.average_terms == pipeline.catalog.operations.average_terms()
    assert after.average_terms > before.average_terms * 1.2
    assert upkeep.refresh_lexical() == 0


def test_lexical_values_wait_while_documents_are_ingested(
    pipeline: Pipeline, upkeep: Upkeep
) -> None:
    ready(pipeline, "a.pdf", "short")
    ready(pipeline, "b.pdf", " ".join(f"word{number}" for number in range(50)))
    pipeline.put("c.pdf", "waiting")
    assert upkeep.refresh_lexical() == 0
    pipeline.run()
    assert upkeep.refresh_lexical() > 0


def test_an_empty_index_needs_nothing(pipeline: Pipeline, upkeep: Upkeep) -> None:
    assert upkeep.refresh_lexical() == 0
    assert upkeep.find_orphans() == 0
    assert upkeep.purge_generations() == 0
    assert upkeep.purge_content() == 0


def test_tenants_are_kept_apart(pipeline: Pipeline, upkeep: Upkeep) -> None:
    accepted = ready(pipeline, "a.pdf", "some words")
    other = Principal.system(pipeline.catalog.access.ensure_tenant("other"), "test")
    kept = pipeline.index.points[pipeline.principal.tenant_id]
    stray = replace(next(iter(kept.values())), generation_id=generation_id("doc_x", 1, "x"))
    pipeline.index.points[other.tenant_id] = {stray.point_id: stray}
    assert upkeep.find_orphans() == 1
    pipeline.clock.advance(PURGE_AFTER_S)
    upkeep.remove_orphans()
    assert list(pipeline.index.generations(other)) == []
    assert has_points(pipeline, accepted)
    assert pipeline.store.keys(BUCKET) == ("a.pdf",)
