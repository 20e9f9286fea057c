"""From an accepted object to points that are visible, and back: the successful walks."""

import hashlib

from core.domain.documents import DocumentStatus, PartState
from core.domain.pages import PageOutcome
from ingest.pipeline import Outcome
from tests.pipeline_harness import BUCKET, Pipeline

TEN_PAGES = "\f".join(f"Page {number} speaks of valves.\nAnd of pumps." for number in range(1, 11))


def num_points(pipeline: Pipeline, document_id: str, generation_id: str) -> int:
    return pipeline.index.count(pipeline.principal, document_id, generation_id)


def test_a_document_becomes_ready_with_all_its_points(pipeline: Pipeline) -> None:
    accepted = pipeline.put("manuals/pump.pdf", "# The pump\n" + TEN_PAGES)
    pipeline.run()
    record = pipeline.record(accepted.document_id)
    assert record.status is DocumentStatus.READY
    assert (record.pages_done, record.pages_total) == (10, 10)
    assert record.title == "The pump"
    assert record.collection == "manuals"
    assert record.num_chunks
    assert num_points(pipeline, accepted.document_id, accepted.generation_id) == record.num_chunks
    assert {outcome for _, outcome in pipeline.outcomes} == {Outcome.DONE}
    assert sorted(pipeline.parser.parsed) == list(range(1, 11))


def test_nothing_is_visible_before_the_points_are_counted(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", TEN_PAGES)
    seen = []
    while pipeline.step():
        with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
            active = snapshot.active([accepted.generation_id])
        indexed = num_points(pipeline, accepted.document_id, accepted.generation_id)
        seen.append((indexed > 0, bool(active)))
    assert seen.count((True, True)) == 1
    assert (False, True) not in seen


def test_the_original_and_every_stage_are_kept_under_the_content(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", TEN_PAGES)
    pipeline.run()
    sha256 = hashlib.sha256(TEN_PAGES.encode()).hexdigest()
    prefix = f"{pipeline.principal.tenant_id}/{sha256}/"
    keys = pipeline.store.keys(pipeline.store.artifacts_bucket)
    assert all(key.startswith(prefix) for key in keys)
    kinds = {key.removeprefix(prefix).partition("/")[0] for key in keys}
    assert kinds == {"original", "elements", "chunks", "vectors"}
    assert pipeline.store.read(
        pipeline.principal, pipeline.store.artifacts_bucket, prefix + "original"
    ) == (TEN_PAGES.encode())
    assert pipeline.record(accepted.document_id).sha256 == sha256


def test_a_file_without_a_title_is_called_by_its_name(pipeline: Pipeline) -> None:
    accepted = pipeline.put("x/annual.report.pdf", "one page")
    pipeline.run()
    assert pipeline.record(accepted.document_id).title == "annual.report"


def test_the_same_bytes_again_are_a_no_op(pipeline: Pipeline) -> None:
    first = pipeline.put("a.pdf", TEN_PAGES)
    pipeline.run()
    again = pipeline.put("a.pdf", TEN_PAGES)
    assert not again.is_new
    assert again.version_seq == first.version_seq
    assert pipeline.step() == []


def test_equal_bytes_under_another_name_are_not_parsed_or_embedded_again(
    pipeline: Pipeline,
) -> None:
    pipeline.put("a.pdf", "# Same\n" + TEN_PAGES)
    pipeline.run()
    parsed, embedded = list(pipeline.parser.parsed), pipeline.embedder.num_passages
    other = pipeline.put("b.pdf", "# Same\n" + TEN_PAGES)
    pipeline.run()
    assert pipeline.status(other.document_id) is DocumentStatus.READY
    assert pipeline.parser.parsed == parsed
    assert pipeline.embedder.num_passages == embedded
    generations = set(pipeline.index.generations(pipeline.principal))
    assert len(generations) == 2


def test_a_replaced_document_flips_to_its_new_generation(pipeline: Pipeline) -> None:
    old = pipeline.put("a.pdf", "old words")
    pipeline.run()
    new = pipeline.put("a.pdf", "new words")
    assert (new.document_id, new.version_seq) == (old.document_id, old.version_seq + 1)
    while pipeline.step():
        with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
            active = snapshot.active([old.generation_id, new.generation_id])
        assert len(active) == 1
    with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
        active = snapshot.active([old.generation_id, new.generation_id])
    assert set(active) == {new.generation_id}


def test_going_back_to_earlier_bytes_makes_a_generation_of_its_own(pipeline: Pipeline) -> None:
    generations = []
    for text in ("version A", "version B", "version A"):
        accepted = pipeline.put("a.pdf", text)
        pipeline.run()
        generations.append(accepted.generation_id)
        with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
            assert set(snapshot.active(generations)) == {accepted.generation_id}
    assert len(set(generations)) == 3


def test_pages_that_cannot_be_searched_make_it_partial_and_are_named(pipeline: Pipeline) -> None:
    pages = ["text", f"!{PageOutcome.IMAGE_ONLY}", "text", f"!{PageOutcome.TIMED_OUT}", ""]
    accepted = pipeline.put("a.pdf", "\f".join(pages))
    pipeline.run()
    record = pipeline.record(accepted.document_id)
    assert record.status is DocumentStatus.PARTIAL
    assert record.failed_pages == (2, 4)
    assert record.warnings == ("page 2: image_only", "page 4: timed_out")


def test_a_blank_page_is_no_fault(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", "text\f\fmore")
    pipeline.run()
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY


def test_every_part_of_the_job_is_done_once(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", TEN_PAGES)
    pipeline.run()
    with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
        job = snapshot.job(accepted.job_id)
    states = {state for counts in job.stages.values() for state, count in counts.items() if count}
    assert states == {PartState.DONE}
    assert job.finished_at is not None
    stages = [stage for stage, _ in pipeline.outcomes]
    assert stages.count("parse") == 3  # 4 + 4 + 2 pages
    assert stages.count("chunk") == stages.count("activate") == 1
    assert pipeline.store.keys(BUCKET) == ("a.pdf",)
