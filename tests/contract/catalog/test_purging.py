"""What may be deleted for good, and when."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import Accepted, Stage
from core.domain.operations import DeadContent
from core.errors import Conflict
from tests.contract.catalog.driver import NUM_CHUNKS, Driver, sha256_of
from tests.fakes.clock import FakeClock

GRACE_S = 60.0
DAY_S = 86_400.0


def dead(catalog: SqlCatalog) -> set[str]:
    found = catalog.operations.dead_generations(older_than_s=GRACE_S, limit=100)
    return {one.generation_id for one in found}


def is_live(catalog: SqlCatalog, accepted: Accepted) -> bool:
    return catalog.operations.is_live_generation(accepted.document_id, accepted.generation_id)


def test_points_outlive_the_flip_by_the_grace_time(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    old = driver.ingest(content="one")
    clock.advance(DAY_S)
    driver.ingest(content="two")
    assert dead(catalog) == set()
    clock.advance(GRACE_S - 0.001)
    assert dead(catalog) == set()
    clock.advance(0.001)
    (found,) = catalog.operations.dead_generations(older_than_s=GRACE_S, limit=9)
    assert (found.tenant_id, found.document_id, found.generation_id) == (
        principal.tenant_id, old.document_id, old.generation_id,
    )  # fmt: skip
    catalog.operations.mark_purged(found.generation_id)
    assert dead(catalog) == set()


def test_every_kind_of_dead_generation_is_found(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    deleted = driver.ingest("deleted.pdf")
    catalog.intake.delete(principal, deleted.document_id, tombstone=False)
    replaced = driver.ingest("replaced.pdf")
    living = [driver.ingest("replaced.pdf", "two"), driver.ingest("kept.pdf")]
    abandoned = driver.accept("abandoned.pdf")
    driver.run_to(abandoned, Stage.INDEX)
    living.append(driver.accept("abandoned.pdf", "two"))
    failed = driver.accept("failed.pdf")
    catalog.parts.fail(
        driver.run_to(failed, Stage.INDEX), code="x", message="m", hint=None, is_final=True
    )
    clock.advance(GRACE_S)
    expected = {one.generation_id for one in (deleted, replaced, abandoned, failed)}
    assert dead(catalog) == expected
    assert len(catalog.operations.dead_generations(older_than_s=GRACE_S, limit=3)) == 3
    assert all(is_live(catalog, one) for one in living)
    assert not any(is_live(catalog, one) for one in (deleted, replaced, abandoned))
    for generation_id in expected:
        catalog.operations.mark_purged(generation_id)
    assert dead(catalog) == set()
    assert not is_live(catalog, failed)


def test_a_living_generation_cannot_be_marked_purged(driver: Driver, catalog: SqlCatalog) -> None:
    accepted = driver.ingest()
    catalog.operations.mark_purged(accepted.generation_id)
    assert is_live(catalog, accepted)
    assert driver.shows(accepted)


def test_a_generation_is_live_for_its_own_document_only(
    driver: Driver, catalog: SqlCatalog
) -> None:
    one, two = driver.accept("1.pdf"), driver.accept("2.pdf")
    assert is_live(catalog, one)
    assert not catalog.operations.is_live_generation(two.document_id, one.generation_id)
    assert not catalog.operations.is_live_generation(one.document_id, "unknown")


def take(catalog: SqlCatalog, retention_s: float = DAY_S) -> list[str]:
    return [one.sha256 for one in catalog.operations.take_dead_content(
        retention_s=retention_s, limit=100
    )]  # fmt: skip


def test_bytes_of_a_deleted_document_may_go_at_once(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    assert take(catalog) == []
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert take(catalog) == [sha256_of("one")]
    assert take(catalog) == []  # somebody is at it
    catalog.operations.finish_dead_content(DeadContent(principal.tenant_id, sha256_of("one")))
    assert take(catalog) == []


def test_bytes_of_a_replaced_version_are_kept_for_the_retention_time(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    driver.ingest(content="one")
    clock.advance(DAY_S * 10)
    driver.ingest(content="two")
    clock.advance(DAY_S - 0.001)
    assert take(catalog) == []
    clock.advance(0.001)
    assert take(catalog) == [sha256_of("one")]


def test_equal_bytes_anywhere_in_the_tenant_keep_the_artifacts(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    first, second = driver.ingest("1.pdf"), driver.ingest("2.pdf")
    other = Driver(catalog, stranger)
    theirs = other.ingest("1.pdf")
    catalog.intake.delete(principal, first.document_id, tombstone=False)
    assert take(catalog) == []
    catalog.intake.delete(principal, second.document_id, tombstone=False)
    (found,) = catalog.operations.take_dead_content(retention_s=DAY_S, limit=9)
    assert found == DeadContent(principal.tenant_id, sha256_of("one"))
    catalog.operations.finish_dead_content(found)
    assert other.shows(theirs)
    with catalog.snapshot(stranger) as snapshot:
        assert snapshot.version(theirs.document_id, sha256_of("one")).version_seq == 1


def test_an_upload_keeps_bytes_that_it_names(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    first = driver.ingest("1.pdf")
    driver.accept("2.pdf", is_upload=True)
    catalog.intake.delete(principal, first.document_id, tombstone=False)
    assert take(catalog) == []


def test_a_purge_that_was_begun_and_never_finished_is_handed_out_again(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    accepted = driver.ingest()
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert take(catalog) == [sha256_of("one")]
    clock.advance(599.0)
    assert take(catalog) == []
    clock.advance(1.0)
    assert take(catalog) == [sha256_of("one")]


def test_finishing_what_was_not_taken_deletes_nothing(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    content = DeadContent(principal.tenant_id, sha256_of("one"))
    catalog.operations.finish_dead_content(content)
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    assert take(catalog) == [sha256_of("one")]


def test_content_is_never_both_wanted_and_purged(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    """A worker about to write artifacts races a purge of the same bytes: one of them yields."""
    outcomes = set()
    for number in range(16):
        content = f"content {number}"
        old = driver.ingest(f"old/{number}.pdf", content)
        part = driver.lease(driver.accept(f"new/{number}.pdf", content))
        catalog.intake.delete(principal, old.document_id, tombstone=False)

        def claim(part=part, content=content) -> bool:  # type: ignore[no-untyped-def]
            try:
                catalog.parts.set_content(part, sha256=sha256_of(content), etag=f"etag-{content}")
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            claimed = pool.submit(claim)
            purged = pool.submit(take, catalog)
            won = (claimed.result(), sha256_of(content) in purged.result())
        assert won in {(True, False), (False, True)}
        outcomes.add(won)
    assert outcomes


def test_two_purgers_never_get_the_same_content(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    for number in range(12):
        accepted = driver.ingest(f"{number}.pdf", f"content {number}")
        catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    with ThreadPoolExecutor(3) as pool:
        taken = [one for batch in pool.map(lambda _: take(catalog), range(6)) for one in batch]
    taken += take(catalog)
    assert sorted(taken) == sorted(sha256_of(f"content {number}") for number in range(12))


@pytest.mark.parametrize("num_documents", [0, 2])
def test_average_terms_is_over_active_chunks(
    driver: Driver, catalog: SqlCatalog, principal: Principal, num_documents: int
) -> None:
    gone = driver.ingest("gone.pdf")
    catalog.intake.delete(principal, gone.document_id, tombstone=False)
    driver.run_to(driver.accept("unfinished.pdf"), Stage.INDEX)
    assert catalog.operations.average_terms() is None
    for number in range(num_documents):
        driver.ingest(f"{number}.pdf")
    expected = 100 / NUM_CHUNKS if num_documents else None
    assert catalog.operations.average_terms() == expected
