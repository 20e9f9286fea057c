"""What becomes of a part when something fails: every row of the table in ingest/failures.py."""

import errno
import random
from collections.abc import Callable

import pytest

from core.domain.documents import DocumentStatus, Stage
from core.errors import (
    BrokerUnavailable,
    CatalogUnavailable,
    Conflict,
    CorruptDocument,
    DocumentTooLarge,
    IndexUnavailable,
    InternalError,
    InvalidInput,
    ManifestMismatch,
    ModelsUnavailable,
    NeedsOcr,
    NeedsPassword,
    NotFound,
    ObjectChanged,
    ObjectStoreUnavailable,
    Overloaded,
    ParserCrashed,
    ParserOutOfMemory,
    ParserTimedOut,
    PinciteError,
    TimedOut,
    UnsupportedDocument,
)
from ingest.backoff import MAX_DELAY_S, Backoff
from ingest.failures import judge
from ingest.pipeline import Outcome
from tests.pipeline_harness import Pipeline


def backoff() -> Backoff:
    return Backoff(2.0, rng=random.Random(1))


@pytest.mark.parametrize(
    "error",
    [
        NeedsPassword("x"),
        CorruptDocument("x"),
        UnsupportedDocument("x"),
        NeedsOcr("x"),
        DocumentTooLarge("x"),
    ],
)
def test_what_a_file_lacks_is_final(error: PinciteError) -> None:
    verdict = judge(error, backoff())
    assert (verdict.code, verdict.is_final, verdict.retry_after_s) == (error.code, True, None)


@pytest.mark.parametrize(
    "error",
    [
        CatalogUnavailable("x"),
        ObjectStoreUnavailable("x"),
        IndexUnavailable("x"),
        ModelsUnavailable("x"),
        BrokerUnavailable("x"),
        TimedOut("x"),
        Conflict("purging"),
        ObjectChanged("x"),
        OSError(errno.ENOSPC, "no space"),
        OSError(errno.EDQUOT, "quota"),
    ],
)
def test_what_may_pass_is_handed_back_and_backed_off(error: Exception) -> None:
    waits = backoff()
    delays = [judge(error, waits).retry_after_s for _ in range(10)]
    assert all(delay is not None and 1.0 <= delay <= MAX_DELAY_S for delay in delays)
    assert delays[-1] is not None
    assert delays[-1] >= MAX_DELAY_S / 2


@pytest.mark.parametrize(
    "error",
    [
        ParserCrashed("x"),
        ParserTimedOut("x"),
        ParserOutOfMemory("x"),
        InternalError("x"),
        InvalidInput("x"),
        NotFound("an artifact is gone"),
        MemoryError(),
        ZeroDivisionError("x"),
        OSError(errno.EACCES, "denied"),
    ],
)
def test_everything_else_is_a_counted_attempt(error: Exception) -> None:
    verdict = judge(error, backoff())
    assert not verdict.is_final
    assert verdict.retry_after_s is None


def test_a_server_that_says_when_is_believed() -> None:
    verdict = judge(Overloaded("x", retry_after_s=17.0), backoff())
    assert verdict.retry_after_s == 17.0


def test_an_index_of_another_embedder_waits_for_a_person() -> None:
    assert judge(ManifestMismatch("x"), backoff()).retry_after_s == 60.0


def test_the_text_of_an_unexpected_error_is_not_recorded() -> None:
    assert "Müller" not in judge(ValueError("Müller earns 5"), backoff()).message


def test_delays_have_jitter_and_are_forgotten_after_a_success() -> None:
    waits = backoff()
    first = [waits.delay_s("a") for _ in range(8)]
    assert len(set(first)) == 8
    assert waits.delay_s("b") <= 2.0
    waits.reset()
    assert waits.delay_s("a") <= 2.0


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("!password", DocumentStatus.NEEDS_PASSWORD),
        ("!corrupt", DocumentStatus.CORRUPT),
        ("!unsupported", DocumentStatus.UNSUPPORTED),
        ("!image_only\f!image_only", DocumentStatus.NEEDS_OCR),
        ("!garbage\f\f", DocumentStatus.NEEDS_OCR),
        ("\f\f", DocumentStatus.CORRUPT),
        ("!crash", DocumentStatus.QUARANTINED),
        ("!memory", DocumentStatus.QUARANTINED),
        ("!timed_out", DocumentStatus.QUARANTINED),
        ("!timed_out\f!failed", DocumentStatus.QUARANTINED),
    ],
)
def test_each_kind_of_bad_file_ends_in_its_status(
    pipeline: Pipeline, text: str, status: DocumentStatus
) -> None:
    bad = pipeline.put("bad.pdf", text)
    good = pipeline.put("good.pdf", "fine")
    pipeline.run(patience_s=60, step_s=5.0)
    record = pipeline.record(bad.document_id)
    assert record.status is status
    assert record.problem is not None
    assert record.problem.message
    assert pipeline.status(good.document_id) is DocumentStatus.READY
    assert not pipeline.index.count(pipeline.principal, bad.document_id, bad.generation_id)


def test_a_scan_in_several_parts_needs_ocr(pipeline: Pipeline) -> None:
    accepted = pipeline.put("scan.pdf", "\f".join(["!image_only"] * 9))
    pipeline.run()
    assert pipeline.status(accepted.document_id) is DocumentStatus.NEEDS_OCR


def test_a_file_over_the_size_limit_is_not_even_read(pipeline: Pipeline) -> None:
    limit = pipeline.settings.parser.max_file_bytes
    accepted = pipeline.put("big.pdf", "x")
    object.__setattr__(pipeline.settings.parser, "max_file_bytes", 0)
    pipeline.run()
    assert limit > 0
    assert pipeline.status(accepted.document_id) is DocumentStatus.TOO_LARGE
    assert pipeline.parser.parsed == []


def test_poison_is_tried_three_times_then_quarantined_and_can_be_retried(
    pipeline: Pipeline,
) -> None:
    attempts = []

    def poison(first: int, last: int) -> None:
        attempts.append(first)
        raise ParserCrashed("the child died")

    pipeline.parser.on_parse = poison
    accepted = pipeline.put("poison.pdf", "text")
    pipeline.run(patience_s=120, step_s=5.0)
    assert len(attempts) == 3
    record = pipeline.record(accepted.document_id)
    assert record.status is DocumentStatus.QUARANTINED
    assert record.problem is not None
    assert record.problem.code == "parser_crashed"
    pipeline.parser.on_parse = lambda _first, _last: None
    pipeline.catalog.parts.retry(pipeline.principal, accepted.job_id)
    pipeline.run()
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY


@pytest.mark.parametrize("name", ["store", "index", "embedder"])
def test_a_server_that_is_down_delays_and_never_quarantines(pipeline: Pipeline, name: str) -> None:
    accepted = pipeline.put("a.pdf", "some text")
    server = getattr(pipeline, name)
    server.is_down = True
    pipeline.run(patience_s=200, step_s=10.0)
    assert pipeline.status(accepted.document_id) in {
        DocumentStatus.QUEUED,
        DocumentStatus.PROCESSING,
    }
    assert [outcome for _, outcome in pipeline.outcomes].count(Outcome.HANDED_BACK) > 3
    server.is_down = False
    pipeline.run(patience_s=90, step_s=10.0)
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY


def nans(vectors: list[list[float]]) -> list[list[float]]:
    return [[float("nan")] * len(vector) for vector in vectors]


def zeros(vectors: list[list[float]]) -> list[list[float]]:
    return [[0.0] * len(vector) for vector in vectors]


def shorter(vectors: list[list[float]]) -> list[list[float]]:
    return [vector[:-1] for vector in vectors]


def fewer(vectors: list[list[float]]) -> list[list[float]]:
    return vectors[:-1]


@pytest.mark.parametrize("spoil", [nans, zeros, shorter, fewer])
def test_bad_vectors_never_reach_the_index(
    pipeline: Pipeline, spoil: Callable[[list[list[float]]], list[list[float]]]
) -> None:
    accepted = pipeline.put("a.pdf", "some text")
    pipeline.embedder.spoil = spoil
    pipeline.run(patience_s=60, step_s=5.0)
    assert pipeline.status(accepted.document_id) is DocumentStatus.QUARANTINED
    assert pipeline.index.num_upserts == 0


def test_an_object_replaced_before_it_was_read_is_left_to_its_new_version(
    pipeline: Pipeline,
) -> None:
    accepted = pipeline.put("a.pdf", "old")
    pipeline.store.put(pipeline.principal, "documents", "a.pdf", b"new")
    pipeline.step()
    assert pipeline.outcomes == [("parse", Outcome.HANDED_BACK)]
    assert pipeline.parser.parsed == []
    hints = pipeline.catalog.intake.take_hints(10)
    assert hints == [(pipeline.principal.tenant_id, "documents", "a.pdf")]
    newer = pipeline.put("a.pdf", "new")
    pipeline.run(patience_s=10)
    assert newer.document_id == accepted.document_id
    assert pipeline.status(newer.document_id) is DocumentStatus.READY
    with pipeline.catalog.snapshot(pipeline.principal) as snapshot:
        assert set(snapshot.active([accepted.generation_id, newer.generation_id])) == {
            newer.generation_id
        }


def test_lost_artifacts_are_made_again(pipeline: Pipeline) -> None:
    accepted = pipeline.put("a.pdf", "\f".join(f"page {number}" for number in range(1, 10)))
    while Stage.CHUNK not in {stage for stage, _ in pipeline.outcomes}:
        pipeline.step()
    for key in pipeline.store.keys(pipeline.store.artifacts_bucket):
        pipeline.store.delete(pipeline.principal, pipeline.store.artifacts_bucket, key)
    pipeline.run(patience_s=10)
    assert pipeline.status(accepted.document_id) is DocumentStatus.READY


def test_points_that_the_index_lost_are_written_again(pipeline: Pipeline) -> None:
    pipeline.index.lose_next = 1
    accepted = pipeline.put("a.pdf", "\f".join(f"page {number}" for number in range(1, 10)))
    pipeline.run()
    record = pipeline.record(accepted.document_id)
    assert record.status is DocumentStatus.READY
    assert record.num_chunks == pipeline.index.count(
        pipeline.principal, accepted.document_id, accepted.generation_id
    )


def test_a_mismatched_index_takes_no_points_and_no_attempts(pipeline: Pipeline) -> None:
    first = pipeline.put("a.pdf", "some text")
    pipeline.run()
    pipeline.embedder._info = pipeline.embedder._info.__class__("other", "other", 32, 64)
    second = pipeline.put("b.pdf", "other text")
    pipeline.run(patience_s=200, step_s=10.0)
    assert pipeline.status(first.document_id) is DocumentStatus.READY
    assert pipeline.status(second.document_id) is DocumentStatus.PROCESSING
    assert pipeline.outcomes[-1] == ("embed", Outcome.HANDED_BACK)
