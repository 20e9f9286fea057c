"""Objects that appear, change and go."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.domain.documents import Accepted, NewPart, ObservedObject, Queue, Stage
from core.errors import NotFound, NotPermitted
from tests.contract.catalog.driver import BUCKET, FINGERPRINT, PARSE, Driver, observed, sha256_of
from tests.fakes.clock import START, FakeClock


def test_a_new_object_becomes_a_queued_document_with_one_announced_part(driver: Driver) -> None:
    accepted = driver.accept("hr/2026/Handbook v2.pdf", "one")
    record = driver.record(accepted)
    assert accepted.is_new
    assert accepted.version_seq == 1
    assert (record.collection, record.title, record.key) == (
        "hr", "Handbook v2", "hr/2026/Handbook v2.pdf",
    )  # fmt: skip
    assert record.status == "queued"
    assert record.created_at == START
    assert record.job_id == accepted.job_id
    part = driver.lease(accepted)
    assert (part.stage, part.first, part.last) == (Stage.PARSE, 1, 32)
    assert (part.bucket, part.etag, part.size_bytes) == (BUCKET, "etag-one", 3)
    assert part.pipeline_fingerprint == FINGERPRINT
    assert part.queue is Queue.BULK


@pytest.mark.parametrize(
    ("key", "collection"),
    [("a.pdf", "default"), ("plant/a.pdf", "plant"), ("/a.pdf", "default"), ("ä/b/c", "ä")],
)
def test_the_first_path_segment_is_the_collection(
    driver: Driver, key: str, collection: str
) -> None:
    accepted = driver.accept(key)
    assert driver.record(accepted).collection == collection


def test_the_same_object_again_changes_nothing(driver: Driver) -> None:
    first = driver.accept()
    again = driver.accept()
    assert again == Accepted(
        first.document_id, first.version_seq, first.generation_id, first.job_id, is_new=False
    )


def test_the_same_bytes_under_another_etag_are_a_no_op_that_moves_the_etag(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    first = driver.accept(content="one", is_upload=True)
    again = catalog.intake.accept(
        principal,
        ObservedObject(BUCKET, "hr/handbook.pdf", "multipart-2", 3, sha256=sha256_of("one")),
        pipeline_fingerprint=FINGERPRINT,
        first_part=PARSE,
        queue=Queue.BULK,
    )
    assert (again.is_new, again.version_seq) == (False, first.version_seq)
    (known,) = catalog.intake.known_objects(principal, BUCKET)
    assert known.etag == "multipart-2"
    listed = catalog.intake.accept(
        principal,
        ObservedObject(BUCKET, "hr/handbook.pdf", "multipart-2", 3),
        pipeline_fingerprint=FINGERPRINT,
        first_part=PARSE,
        queue=Queue.BULK,
    )
    assert not listed.is_new


def test_other_bytes_are_a_new_version_and_end_the_unfinished_one(
    driver: Driver, catalog: SqlCatalog
) -> None:
    old = driver.accept(content="one")
    running = driver.lease(old)
    new = driver.accept(content="two")
    assert (new.document_id, new.version_seq, new.is_new) == (old.document_id, 2, True)
    assert new.generation_id != old.generation_id
    assert catalog.parts.lease(running.part_id, owner="other", lease_s=1.0) is None
    with catalog.snapshot(driver.principal) as snapshot:
        replaced = snapshot.job(old.job_id)
    assert (replaced.status, replaced.finished_at) == ("quarantined", START)
    assert replaced.problem is not None
    assert replaced.problem.code == "superseded"
    assert driver.record(new).status == "queued"


def test_a_finished_version_stays_searchable_while_a_newer_one_waits(driver: Driver) -> None:
    old = driver.ingest(content="one")
    new = driver.accept(content="two")
    assert driver.shows(old)
    record = driver.record(new)
    assert (record.version_seq, record.active_version_seq, record.status) == (2, 1, "queued")


def test_a_deleted_document_comes_back_as_a_new_version(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    catalog.intake.delete(principal, old.document_id, tombstone=False)
    assert not driver.is_known(old)
    new = driver.ingest(content="one")
    assert (new.document_id, new.version_seq) == (old.document_id, 2)
    assert driver.shows(new)
    assert not driver.shows(old)


def test_a_listing_does_not_undo_a_tombstone_but_an_upload_does(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    known = catalog.intake.delete(principal, old.document_id, tombstone=True)
    assert (known.is_deleted, known.tombstone_etag) == (True, "etag-one")
    assert not driver.accept(content="one").is_new
    assert not driver.is_known(old)
    assert driver.accept(content="one", is_upload=True).is_new
    assert driver.is_known(old)


def test_a_tombstone_does_not_cover_other_bytes(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    catalog.intake.delete(principal, old.document_id, tombstone=True)
    assert driver.accept(content="two").is_new
    (known,) = catalog.intake.known_objects(principal, BUCKET)
    assert (known.is_deleted, known.tombstone_etag) == (False, None)


def test_a_key_is_one_document_a_tenant(driver: Driver, stranger: Principal) -> None:
    mine = driver.accept("a.pdf")
    theirs = driver.accept("a.pdf", principal=stranger)
    assert theirs.is_new
    assert theirs.document_id != mine.document_id


def test_a_collection_outside_the_key_s_reach_is_refused(
    driver: Driver, principal: Principal
) -> None:
    narrow = Principal(
        principal.tenant_id, "narrow", frozenset({Scope.INGEST}), frozenset({"plant"})
    )
    with pytest.raises(NotPermitted):
        driver.accept("hr/a.pdf", principal=narrow)
    assert driver.accept("plant/a.pdf", principal=narrow).is_new


def test_eight_threads_that_announce_the_same_object_make_one_version(
    catalog: SqlCatalog, principal: Principal
) -> None:
    def announce(_: int) -> Accepted:
        return catalog.intake.accept(
            principal,
            observed("hr/a.pdf", "one"),
            pipeline_fingerprint=FINGERPRINT,
            first_part=PARSE,
            queue=Queue.BULK,
        )

    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(announce, range(24)))
    assert sum(one.is_new for one in accepted) == 1
    assert len({(one.document_id, one.generation_id, one.job_id) for one in accepted}) == 1
    assert {one.version_seq for one in accepted} == {1}
    assert len(catalog.parts.take_outbox(100)) == 1


def test_eight_threads_that_replace_an_object_number_the_versions_without_gaps(
    catalog: SqlCatalog, principal: Principal
) -> None:
    def announce(number: int) -> Accepted:
        return catalog.intake.accept(
            principal,
            observed("hr/a.pdf", f"content {number}"),
            pipeline_fingerprint=FINGERPRINT,
            first_part=PARSE,
            queue=Queue.BULK,
        )

    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(announce, range(24)))
    assert sorted(one.version_seq for one in accepted) == list(range(1, 25))
    (message,) = catalog.parts.take_outbox(100)
    part = catalog.parts.lease(message.part_id, owner="worker", lease_s=1.0)
    assert part is not None
    assert part.version_seq == 24


def test_known_objects_come_in_code_point_order_deleted_ones_included(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    keys = ["b.pdf", "B.pdf", "a/z.pdf", "é.pdf", "a.pdf", "z.pdf", "\U0001f600.pdf", "\ufffd.pdf"]
    accepted = {key: driver.accept(key, f"content of {key}") for key in keys}
    driver.accept("other.pdf", principal=stranger)
    catalog.intake.delete(principal, accepted["z.pdf"].document_id, tombstone=False)
    known = list(catalog.intake.known_objects(principal, BUCKET))
    assert [one.key for one in known] == sorted(keys)
    assert [one.key for one in known if one.is_deleted] == ["z.pdf"]
    assert list(catalog.intake.known_objects(principal, "elsewhere")) == []


def test_known_objects_are_read_in_pages(
    driver: Driver, catalog: SqlCatalog, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.adapters.catalog.intake._PAGE", 3)
    for number in range(9):
        driver.accept(f"{number}.pdf")
    known = catalog.intake.known_objects(principal, BUCKET)
    assert [one.key for one in known] == [f"{number}.pdf" for number in range(9)]


def test_delete_says_not_found_for_what_one_may_not_see(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    accepted = driver.ingest()
    narrow = Principal(principal.tenant_id, "narrow", frozenset(Scope), frozenset({"plant"}))
    for somebody, document_id in (
        (stranger, accepted.document_id),
        (narrow, accepted.document_id),
        (principal, "doc_" + "0" * 32),
    ):
        with pytest.raises(NotFound):
            catalog.intake.delete(somebody, document_id, tombstone=False)
    assert driver.shows(accepted)
    known = catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert (known.is_deleted, known.key, known.etag) == (True, "hr/handbook.pdf", "etag-one")
    with pytest.raises(NotFound):
        catalog.intake.delete(principal, accepted.document_id, tombstone=False)


def test_delete_stops_the_work(driver: Driver, catalog: SqlCatalog, principal: Principal) -> None:
    accepted = driver.accept()
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert catalog.parts.sweep() == 0
    assert catalog.parts.take_outbox(10) == []
    with catalog.snapshot(principal) as snapshot:
        assert snapshot.job(accepted.job_id).status == "deleting"
        assert snapshot.documents() == ([], None)
        assert snapshot.collections() == [("hr", 0)]


def test_hints_are_taken_once_oldest_first(
    catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    tenant = principal.tenant_id
    for key in ("b", "a", "b", "c"):
        clock.advance(1.0)
        catalog.intake.add_hint(tenant, BUCKET, key)
    assert list(catalog.intake.take_hints(2)) == [(tenant, BUCKET, "b"), (tenant, BUCKET, "a")]
    catalog.intake.add_hint(tenant, BUCKET, "a")
    assert [key for _, _, key in catalog.intake.take_hints(9)] == ["c", "a"]
    assert list(catalog.intake.take_hints(9)) == []


def test_hints_are_taken_by_one_of_many(catalog: SqlCatalog, principal: Principal) -> None:
    for number in range(60):
        catalog.intake.add_hint(principal.tenant_id, BUCKET, f"{number}")
    with ThreadPoolExecutor(4) as pool:
        taken = [one for batch in pool.map(lambda _: catalog.intake.take_hints(7), range(20))
                 for one in batch]  # fmt: skip
    assert len(taken) == len(set(taken))
    assert set(taken) | set(catalog.intake.take_hints(60)) == {
        (principal.tenant_id, BUCKET, f"{number}") for number in range(60)
    }


def test_a_first_part_may_be_of_any_size(driver: Driver) -> None:
    accepted = driver.accept(first_part=NewPart(Stage.PARSE, 1, 8))
    assert driver.lease(accepted).last == 8
