"""What a snapshot shows, to whom, and that it never changes."""

import threading

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.domain.documents import Accepted, DocumentStatus, Stage
from core.errors import Gone, InvalidInput, NotFound
from tests.contract.catalog.driver import NUM_CHUNKS, Driver, sha256_of
from tests.fakes.clock import FakeClock


def narrow(principal: Principal, *collections: str) -> Principal:
    return Principal(
        principal.tenant_id, "narrow", frozenset({Scope.SEARCH}), frozenset(collections)
    )


def test_a_snapshot_opened_before_a_flip_keeps_the_old_generation(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    new = driver.accept(content="two")
    part = driver.run_to(new, Stage.ACTIVATE)
    both = [old.generation_id, new.generation_id]
    with catalog.snapshot(principal) as before:
        assert catalog.parts.activate(part, num_points=NUM_CHUNKS)
        assert list(before.active(both)) == [old.generation_id]
        assert before.version(old.document_id).version_seq == 1
        assert before.document(old.document_id).status == "processing"
    with catalog.snapshot(principal) as after:
        assert list(after.active(both)) == [new.generation_id]


def test_the_read_point_is_the_opening_not_the_first_question(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    with catalog.snapshot(principal) as snapshot:
        catalog.intake.delete(principal, accepted.document_id, tombstone=False)
        driver.accept("new.pdf")
        assert list(snapshot.active([accepted.generation_id])) == [accepted.generation_id]
        assert snapshot.collections() == [("hr", 1)]
    assert not driver.shows(accepted)


def test_a_snapshot_opened_after_a_delete_never_shows_it(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    with catalog.snapshot(principal) as snapshot:
        assert snapshot.active([accepted.generation_id]) == {}
        for ask in (
            lambda: snapshot.document(accepted.document_id),
            lambda: snapshot.version(accepted.document_id),
            lambda: snapshot.version(accepted.document_id, sha256_of("one")),
        ):
            with pytest.raises(NotFound):
                ask()


def test_writers_go_on_while_a_snapshot_is_open(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    with catalog.snapshot(principal) as snapshot:
        accepted = [driver.ingest(f"{number}.pdf") for number in range(3)]
        assert snapshot.documents() == ([], None)
    assert all(driver.shows(one) for one in accepted)


def test_active_takes_any_number_of_ids_and_ignores_unknown_ones(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = [driver.ingest(f"{number}.pdf") for number in range(3)]
    waiting = driver.accept("waiting.pdf")
    ids = [f"unknown-{number}" for number in range(1_200)]
    ids += [one.generation_id for one in accepted] * 2 + [waiting.generation_id]
    with catalog.snapshot(principal) as snapshot:
        assert set(snapshot.active(ids)) == {one.generation_id for one in accepted}
        assert snapshot.active([]) == {}


def test_other_tenants_and_collections_are_not_there(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    accepted = driver.ingest("hr/a.pdf")
    for somebody in (stranger, narrow(principal, "plant"), narrow(principal)):
        with catalog.snapshot(somebody) as snapshot:
            assert snapshot.active([accepted.generation_id]) == {}
            assert snapshot.documents() == ([], None)
            assert snapshot.collections() == []
            assert snapshot.jobs() == ([], None)
            for ask in (
                lambda: snapshot.document(accepted.document_id),
                lambda: snapshot.version(accepted.document_id),
                lambda: snapshot.job(accepted.job_id),
            ):
                with pytest.raises(NotFound):
                    ask()
    with catalog.snapshot(narrow(principal, "plant", "hr")) as snapshot:
        assert set(snapshot.active([accepted.generation_id])) == {accepted.generation_id}
        assert snapshot.job(accepted.job_id).status == "ready"


def test_documents_come_newest_first_in_pages(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = [driver.accept(f"{number}.pdf") for number in range(7)]
    catalog.intake.delete(principal, accepted[3].document_id, tombstone=False)
    expected = [one.document_id for one in reversed(accepted) if one is not accepted[3]]
    for limit in (1, 2, 3, 6, 50):
        found, cursor = [], None
        with catalog.snapshot(principal) as snapshot:
            while True:
                page, cursor = snapshot.documents(cursor=cursor, limit=limit)
                assert len(page) <= limit
                found += [record.document_id for record in page]
                if cursor is None:
                    break
        assert found == expected


@pytest.mark.parametrize("cursor", ["", "x", "ä", "ZG9jXzE", "=", "am9iXzAxMjM0"])
def test_a_foreign_cursor_is_refused(
    catalog: SqlCatalog, principal: Principal, cursor: str
) -> None:
    with catalog.snapshot(principal) as snapshot:
        with pytest.raises(InvalidInput):
            snapshot.documents(cursor=cursor)
        with pytest.raises(InvalidInput):
            snapshot.jobs(cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_limit_out_of_bounds_is_refused(
    catalog: SqlCatalog, principal: Principal, limit: int
) -> None:
    with catalog.snapshot(principal) as snapshot, pytest.raises(InvalidInput):
        snapshot.documents(limit=limit)


def documents_of_each_status(
    driver: Driver, catalog: SqlCatalog
) -> dict[DocumentStatus, list[Accepted]]:
    found: dict[DocumentStatus, list[Accepted]] = {status: [] for status in DocumentStatus}
    found[DocumentStatus.QUEUED] = [driver.accept("q/1.pdf"), driver.accept("q/2.pdf")]
    found[DocumentStatus.PROCESSING] = [driver.accept("p/1.pdf"), driver.accept("p/2.pdf")]
    driver.lease(found[DocumentStatus.PROCESSING][0])
    driver.run_to(found[DocumentStatus.PROCESSING][1], Stage.INDEX)
    found[DocumentStatus.READY] = [driver.ingest("r/1.pdf")]
    for code in ("needs_ocr", "needs_password", "unsupported", "corrupt", "too_large", "other"):
        accepted = driver.accept(f"f/{code}.pdf")
        catalog.parts.fail(driver.lease(accepted), code=code, message="m", hint=None, is_final=True)
        is_status = code != "other"
        found[DocumentStatus(code) if is_status else DocumentStatus.QUARANTINED].append(accepted)
    return found


def test_documents_and_counts_agree_on_every_status(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    expected = documents_of_each_status(driver, catalog)
    counts = catalog.operations.counts(principal.tenant_id)
    with catalog.snapshot(principal) as snapshot:
        for status in DocumentStatus:
            records, _ = snapshot.documents(status=status)
            assert {record.document_id for record in records} == {
                one.document_id for one in expected[status]
            }
            assert {record.status for record in records} <= {status}
            assert counts.documents[status] == len(expected[status])
        assert len(snapshot.documents(collection="f")[0]) == 6
        assert len(snapshot.documents(collection="f", status=DocumentStatus.CORRUPT)[0]) == 1
        assert snapshot.collections() == [("f", 6), ("p", 2), ("q", 2), ("r", 1)]


def test_a_version_is_served_by_its_hash_until_its_bytes_are_gone(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    first = driver.ingest(content="one")
    driver.ingest(content="two")
    with catalog.snapshot(principal) as snapshot:
        assert snapshot.version(first.document_id).sha256 == sha256_of("two")
        old = snapshot.version(first.document_id, sha256_of("one"))
        assert (old.version_seq, old.generation_id) == (1, first.generation_id)
        assert snapshot.version(first.document_id, sha256_of("two")).version_seq == 2
        with pytest.raises(NotFound):
            snapshot.version(first.document_id, sha256_of("three"))
    clock.advance(100.0)
    (dead,) = catalog.operations.take_dead_content(retention_s=100.0, limit=9)
    for _ in range(2):
        with catalog.snapshot(principal) as snapshot, pytest.raises(Gone):
            snapshot.version(first.document_id, sha256_of("one"))
        catalog.operations.finish_dead_content(dead)


def test_a_version_that_was_never_ready_is_not_served(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept()
    driver.run_to(accepted, Stage.INDEX)
    with catalog.snapshot(principal) as snapshot:
        for sha256 in (None, sha256_of("one")):
            with pytest.raises(NotFound):
                snapshot.version(accepted.document_id, sha256)


def test_versions_of_an_earlier_life_are_gone(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    catalog.intake.delete(principal, old.document_id, tombstone=False)
    driver.ingest(content="two")
    with catalog.snapshot(principal) as snapshot, pytest.raises(Gone):
        snapshot.version(old.document_id, sha256_of("one"))


def test_jobs_come_newest_first_in_pages(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = [driver.accept(f"{number}.pdf") for number in range(3)]
    accepted.append(driver.accept("0.pdf", "other"))
    with catalog.snapshot(principal) as snapshot:
        first, cursor = snapshot.jobs(limit=3)
        rest, end = snapshot.jobs(cursor=cursor, limit=3)
    assert end is None
    assert [job.job_id for job in first + rest] == [one.job_id for one in reversed(accepted)]


def test_the_job_of_a_deleted_document_goes_with_its_points(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert catalog.operations.counts().documents[DocumentStatus.DELETING] == 1
    for dead in catalog.operations.dead_generations(older_than_s=0.0, limit=9):
        catalog.operations.mark_purged(dead.generation_id)
    with catalog.snapshot(principal) as snapshot, pytest.raises(NotFound):
        snapshot.job(accepted.job_id)
    assert catalog.operations.counts().documents[DocumentStatus.DELETING] == 0


def test_a_snapshot_may_be_asked_from_many_threads(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    found: list[int] = []
    with catalog.snapshot(principal) as snapshot:

        def ask() -> None:
            for _ in range(10):
                found.append(len(snapshot.active([accepted.generation_id])))
                snapshot.document(accepted.document_id)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [1] * 40
