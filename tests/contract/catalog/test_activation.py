"""When a generation may be shown, and when a new version is nothing new."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import ObservedObject, PartResult, Queue, Stage
from core.domain.operations import DeadContent
from core.errors import Conflict, InternalError, LeaseLost
from tests.contract.catalog.driver import (
    BUCKET,
    EMBED,
    FINGERPRINT,
    NUM_CHUNKS,
    PARSE,
    Driver,
    sha256_of,
)
from tests.fakes.clock import START, FakeClock


def test_activation_shows_the_document_and_ends_the_job(
    driver: Driver, catalog: SqlCatalog
) -> None:
    accepted = driver.accept()
    part = driver.run_to(accepted, Stage.ACTIVATE)
    assert driver.record(accepted).status == "processing"
    assert not driver.shows(accepted)
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS)
    record = driver.record(accepted)
    assert (record.status, record.num_chunks, record.pages_done) == ("ready", NUM_CHUNKS, 3)
    with catalog.snapshot(driver.principal) as snapshot:
        active = snapshot.active([accepted.generation_id])[accepted.generation_id]
        job = snapshot.job(accepted.job_id)
    assert (active.sha256, active.page_count) == (sha256_of("one"), 3)
    assert active.parser_fingerprint == "parser-1"
    assert (job.status, job.finished_at) == ("ready", START)
    with pytest.raises(LeaseLost):
        catalog.parts.activate(part, num_points=NUM_CHUNKS)


@pytest.mark.parametrize("num_points", [0, NUM_CHUNKS - 1, NUM_CHUNKS + 1])
def test_a_wrong_number_of_points_is_never_shown(
    driver: Driver, catalog: SqlCatalog, num_points: int
) -> None:
    accepted = driver.accept()
    part = driver.run_to(accepted, Stage.ACTIVATE)
    with pytest.raises(InternalError):
        catalog.parts.activate(part, num_points=num_points)
    assert not driver.shows(accepted)
    assert driver.record(accepted).status == "processing"
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS)


@pytest.mark.parametrize("num_chunks", [None, 0])
def test_a_document_without_chunks_is_never_ready(
    driver: Driver, catalog: SqlCatalog, num_chunks: int | None
) -> None:
    accepted = driver.accept()
    chunk = driver.run_to(accepted, Stage.CHUNK)
    driver.complete(chunk, PartResult(next_stage=(EMBED,), num_chunks=num_chunks))
    part = driver.run_to(accepted, Stage.ACTIVATE)
    with pytest.raises(InternalError):
        catalog.parts.activate(part, num_points=0)
    assert not driver.shows(accepted)


def test_failed_pages_make_it_partial(driver: Driver, catalog: SqlCatalog) -> None:
    accepted = driver.accept()
    chunk = driver.run_to(accepted, Stage.CHUNK)
    driver.complete(
        chunk, PartResult(next_stage=(EMBED,), num_chunks=NUM_CHUNKS, failed_pages=(2,))
    )
    part = driver.run_to(accepted, Stage.ACTIVATE)
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS)
    assert driver.record(accepted).status == "partial"


def test_a_flip_shows_the_new_generation_and_only_it(driver: Driver) -> None:
    old = driver.ingest(content="one")
    new = driver.ingest(content="two")
    assert (driver.shows(old), driver.shows(new)) == (False, True)
    record = driver.record(new)
    assert (record.version_seq, record.active_version_seq, record.status) == (2, 2, "ready")


def test_a_replaced_version_cannot_be_activated(driver: Driver, catalog: SqlCatalog) -> None:
    old = driver.accept(content="one")
    part = driver.run_to(old, Stage.ACTIVATE)
    new = driver.ingest(content="two")
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS) is False
    assert (driver.shows(old), driver.shows(new)) == (False, True)


def test_a_deleted_document_cannot_be_activated(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept()
    part = driver.run_to(accepted, Stage.ACTIVATE)
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS) is False
    revived = driver.accept(content="two")
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS) is False
    assert not driver.shows(revived)


def test_a_race_of_activation_and_delete_never_shows_a_deleted_document(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    for number in range(12):
        accepted = driver.accept(f"{number}.pdf")
        part = driver.run_to(accepted, Stage.ACTIVATE)
        with ThreadPoolExecutor(2) as pool:
            flip = pool.submit(catalog.parts.activate, part, num_points=NUM_CHUNKS)
            gone = pool.submit(
                catalog.intake.delete, principal, accepted.document_id, tombstone=False
            )
            assert gone.result().is_deleted
            flip.result()
        assert not driver.shows(accepted)
        assert not driver.is_known(accepted)


def test_bytes_that_are_active_already_close_the_version(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    active = driver.ingest(content="one")
    again = catalog.intake.accept(
        principal,
        ObservedObject(BUCKET, "hr/handbook.pdf", "multipart-1", 3),
        pipeline_fingerprint=FINGERPRINT,
        first_part=PARSE,
        queue=Queue.BULK,
    )
    assert (again.is_new, again.version_seq) == (True, 2)
    driver.listen(again.generation_id)
    part = driver.lease(again)
    found = catalog.parts.set_content(part, sha256=sha256_of("one"), etag="multipart-1")
    assert found == active.generation_id
    record = driver.record(again)
    assert (record.status, record.version_seq, record.active_version_seq) == ("ready", 2, 1)
    assert (record.num_chunks, record.pages_total) == (NUM_CHUNKS, 3)
    with catalog.snapshot(principal) as snapshot:
        job = snapshot.job(again.job_id)
        shown = snapshot.active([active.generation_id, again.generation_id])
    assert (job.status, job.finished_at) == ("ready", START)
    assert list(shown) == [active.generation_id]
    assert shown[active.generation_id].etag == "multipart-1"
    (known,) = catalog.intake.known_objects(principal, BUCKET)
    assert known.etag == "multipart-1"
    with pytest.raises(LeaseLost):
        catalog.parts.complete(part, PartResult(next_stage=(EMBED,)))
    assert catalog.parts.sweep() == 0


def test_going_back_to_the_active_bytes_ends_a_replacement_under_way(
    driver: Driver, catalog: SqlCatalog
) -> None:
    first = driver.ingest(content="one")
    second = driver.accept(content="two")
    late = driver.run_to(second, Stage.ACTIVATE)
    third = driver.accept(content="one")
    assert third.version_seq == 3
    found = catalog.parts.set_content(driver.lease(third), sha256=sha256_of("one"), etag="etag-one")
    assert found == first.generation_id
    assert catalog.parts.activate(late, num_points=NUM_CHUNKS) is False
    assert driver.shows(first)
    assert driver.record(first).status == "ready"


def test_going_back_to_earlier_bytes_is_a_generation_of_its_own(driver: Driver) -> None:
    first = driver.ingest(content="one")
    second = driver.ingest(content="two")
    third = driver.ingest(content="one")
    assert len({one.generation_id for one in (first, second, third)}) == 3
    assert [driver.shows(one) for one in (first, second, third)] == [False, False, True]


def test_the_active_bytes_under_another_pipeline_are_worked_on(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    new = catalog.intake.accept(
        principal,
        ObservedObject(BUCKET, "hr/handbook.pdf", "etag-new", 3),
        pipeline_fingerprint="pipeline-2",
        first_part=PARSE,
        queue=Queue.BULK,
    )
    driver.content[new.generation_id] = "one"
    driver.listen(new.generation_id)
    part = driver.lease(new)
    assert catalog.parts.set_content(part, sha256=sha256_of("one"), etag="etag-new") is None
    assert driver.shows(old)


def test_content_cannot_be_set_while_it_is_being_purged(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    old = driver.ingest(content="one")
    catalog.intake.delete(principal, old.document_id, tombstone=False)
    assert catalog.operations.take_dead_content(retention_s=0.0, limit=9) == [
        DeadContent(principal.tenant_id, sha256_of("one"))
    ]
    new = driver.accept("other.pdf", "one")
    part = driver.lease(new)
    with pytest.raises(Conflict):
        catalog.parts.set_content(part, sha256=sha256_of("one"), etag="etag-one")
    catalog.operations.finish_dead_content(DeadContent(principal.tenant_id, sha256_of("one")))
    assert catalog.parts.set_content(part, sha256=sha256_of("one"), etag="etag-one") is None
    assert catalog.operations.take_dead_content(retention_s=0.0, limit=9) == []


def test_a_newer_etag_of_the_same_bytes_survives_a_worker_that_read_the_older(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept(content="one", is_upload=True)
    part = driver.lease(accepted)
    catalog.intake.accept(
        principal,
        ObservedObject(BUCKET, "hr/handbook.pdf", "copied", 3, sha256=sha256_of("one")),
        pipeline_fingerprint=FINGERPRINT,
        first_part=PARSE,
        queue=Queue.BULK,
    )
    catalog.parts.set_content(part, sha256=sha256_of("one"), etag="etag-one")
    (known,) = catalog.intake.known_objects(principal, BUCKET)
    assert known.etag == "copied"
