"""Who may work on a part, how often, and what ends it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import Accepted, DocumentStatus, LeasedPart, NewPart, PartResult, Stage
from core.errors import LeaseLost
from tests.contract.catalog.conftest import MAX_ATTEMPTS, RETRY_BASE_S
from tests.contract.catalog.driver import CHUNK, LEASE_S, RESULTS, Driver
from tests.fakes.clock import FakeClock


def lease(catalog: SqlCatalog, part_id: str) -> LeasedPart | None:
    return catalog.parts.lease(part_id, owner="worker", lease_s=LEASE_S)


def announced(catalog: SqlCatalog) -> list[str]:
    """The part ids that a sweep and the outbox bring now."""
    catalog.parts.sweep()
    messages = catalog.parts.take_outbox(100)
    catalog.parts.mark_sent([message.message_id for message in messages])
    return [message.part_id for message in messages]


def test_a_lease_keeps_others_away_until_it_expires(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    first = driver.lease(driver.accept())
    assert (first.attempt, first.epoch) == (1, 1)
    assert first.expires_at == clock.now() + timedelta(seconds=LEASE_S)
    clock.advance(LEASE_S - 0.001)
    assert lease(catalog, first.part_id) is None
    clock.advance(0.001)
    second = lease(catalog, first.part_id)
    assert second is not None
    assert (second.attempt, second.epoch) == (2, 2)


def test_a_late_writer_is_fenced(driver: Driver, catalog: SqlCatalog, clock: FakeClock) -> None:
    late = driver.lease(driver.accept())
    clock.advance(LEASE_S)
    current = lease(catalog, late.part_id)
    assert current is not None
    parts = catalog.parts
    for write in (
        lambda: parts.renew(late, lease_s=1.0),
        lambda: parts.set_content(late, sha256="0" * 64, etag="etag-one"),
        lambda: parts.complete(late, RESULTS[Stage.PARSE]),
        lambda: parts.activate(late, num_points=1),
        lambda: parts.release(late, retry_at=clock.now(), code="x", message="y"),
        lambda: parts.fail(late, code="x", message="y", hint=None, is_final=True),
    ):
        with pytest.raises(LeaseLost):
            write()
    driver.complete(current)
    with pytest.raises(LeaseLost):  # the same completion delivered twice
        driver.complete(current)


def test_a_late_writer_whose_part_nobody_took_may_still_finish(
    driver: Driver, clock: FakeClock
) -> None:
    accepted = driver.accept()
    late = driver.lease(accepted)
    clock.advance(LEASE_S * 10)
    driver.complete(late)
    assert driver.lease(accepted).stage is Stage.CHUNK


def test_a_swept_lease_is_lost(driver: Driver, catalog: SqlCatalog, clock: FakeClock) -> None:
    late = driver.lease(driver.accept())
    clock.advance(LEASE_S)
    assert announced(catalog) == [late.part_id]
    with pytest.raises(LeaseLost):
        catalog.parts.renew(late, lease_s=1.0)


def test_renew_moves_the_expiry(driver: Driver, catalog: SqlCatalog, clock: FakeClock) -> None:
    first = driver.lease(driver.accept())
    clock.advance(LEASE_S / 2)
    renewed = catalog.parts.renew(first, lease_s=LEASE_S)
    assert renewed.expires_at == clock.now() + timedelta(seconds=LEASE_S)
    assert (renewed.epoch, renewed.attempt) == (first.epoch, first.attempt)
    clock.advance(LEASE_S * 0.9)
    assert lease(catalog, first.part_id) is None


@pytest.mark.parametrize("event", ["deleted", "replaced"])
def test_an_unwanted_version_is_neither_leased_nor_renewed(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock, event: str
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    if event == "deleted":
        catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    else:
        driver.accept(content="two")
    for write in (
        lambda: catalog.parts.renew(part, lease_s=1.0),
        lambda: catalog.parts.complete(part, RESULTS[Stage.PARSE]),
    ):
        with pytest.raises(LeaseLost):
            write()
    clock.advance(LEASE_S)
    assert lease(catalog, part.part_id) is None


def test_a_done_or_unknown_part_is_not_leased(driver: Driver, catalog: SqlCatalog) -> None:
    part = driver.lease(driver.accept())
    driver.complete(part)
    assert lease(catalog, part.part_id) is None
    assert lease(catalog, "part_" + "0" * 32) is None


def test_the_third_lost_worker_is_the_last(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    part_id = driver.lease(accepted).part_id
    for attempt in range(2, MAX_ATTEMPTS + 1):
        clock.advance(LEASE_S)
        again = lease(catalog, part_id)
        assert again is not None
        assert again.attempt == attempt
        assert driver.record(accepted).status == "processing"
    assert lease(catalog, part_id) is None  # still held: not a fourth attempt
    assert driver.record(accepted).status == "processing"
    clock.advance(LEASE_S)
    assert lease(catalog, part_id) is None
    record = driver.record(accepted)
    assert (record.status, record.attempts) == ("quarantined", MAX_ATTEMPTS)
    assert record.problem is not None
    assert record.problem.code == "worker_lost"
    assert announced(catalog) == []


def test_failures_wait_longer_each_time_and_end_in_quarantine(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    for attempt in range(1, MAX_ATTEMPTS):
        catalog.parts.fail(
            part, code="parser_crashed", message=f"signal {attempt}", hint=None, is_final=False
        )
        wait_s = RETRY_BASE_S * 2 ** (attempt - 1)
        clock.advance(wait_s - 0.001)
        assert lease(catalog, part.part_id) is None
        assert announced(catalog) == []
        clock.advance(0.001)
        assert announced(catalog) == [part.part_id]
        again = lease(catalog, part.part_id)
        assert again is not None
        part = again
    catalog.parts.fail(part, code="parser_crashed", message="signal 3", hint="h", is_final=False)
    record = driver.record(accepted)
    assert record.status == "quarantined"
    assert record.problem is not None
    assert (record.problem.code, record.problem.message, record.problem.hint) == (
        "parser_crashed", "signal 3", "h",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("needs_password", DocumentStatus.NEEDS_PASSWORD),
        ("corrupt", DocumentStatus.CORRUPT),
        ("unsupported", DocumentStatus.UNSUPPORTED),
        ("needs_ocr", DocumentStatus.NEEDS_OCR),
        ("too_large", DocumentStatus.TOO_LARGE),
        ("ready", DocumentStatus.QUARANTINED),
        ("object_changed", DocumentStatus.QUARANTINED),
    ],
)
def test_a_final_failure_is_the_status(
    driver: Driver, catalog: SqlCatalog, code: str, status: DocumentStatus
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    catalog.parts.fail(part, code=code, message="m\0essage", hint=None, is_final=True)
    record = driver.record(accepted)
    assert (record.status, record.attempts) == (status, 1)
    assert record.problem is not None
    assert (record.problem.code, record.problem.message) == (code, "message")
    assert lease(catalog, part.part_id) is None
    with catalog.snapshot(driver.principal) as snapshot:
        job = snapshot.job(accepted.job_id)
    assert (job.status, job.problem, job.finished_at) == (status, record.problem, record.updated_at)


def test_a_release_gives_the_attempt_back(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    for _ in range(MAX_ATTEMPTS * 3):
        retry_at = clock.now() + timedelta(seconds=20)
        catalog.parts.release(part, retry_at=retry_at, code="index_unavailable", message="down")
        assert lease(catalog, part.part_id) is None
        clock.advance(20)
        again = lease(catalog, part.part_id)
        assert again is not None
        assert again.attempt == 1
        part = again
    driver.complete(part)
    assert driver.record(accepted).problem is None


def test_a_release_that_is_due_at_once_is_announced_at_once(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    part = driver.lease(driver.accept())
    catalog.parts.release(part, retry_at=clock.now(), code="stopped", message="worker stops")
    assert [message.part_id for message in catalog.parts.take_outbox(10)] == [part.part_id]


def test_a_failed_part_ends_the_others(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    rest = tuple(NewPart(Stage.PARSE, first, first + 31) for first in (33, 65, 97))
    driver.complete(
        driver.lease(accepted), PartResult(same_stage=rest, next_stage=(CHUNK,), page_count=128)
    )
    bad, good = driver.lease(accepted), driver.lease(accepted)
    waiting = driver.announced[accepted.generation_id]
    catalog.parts.fail(bad, code="corrupt", message="m", hint=None, is_final=True)
    assert [lease(catalog, part_id) for part_id in waiting] == [None]
    assert announced(catalog) == []
    driver.complete(good, PartResult(next_stage=(CHUNK,)))  # what runs may end
    clock.advance(3_600)
    assert announced(catalog) == []
    assert driver.record(accepted).status == "corrupt"
    assert catalog.operations.counts().queue_depth == 0


def test_six_threads_claim_360_parts_without_a_duplicate(
    driver: Driver, catalog: SqlCatalog
) -> None:
    ids: list[str] = []
    for number in range(6):
        accepted = driver.accept(f"hr/{number}.pdf")
        rest = tuple(NewPart(Stage.PARSE, 33 + 32 * place, 64 + 32 * place) for place in range(60))
        driver.complete(driver.lease(accepted), PartResult(same_stage=rest, next_stage=(CHUNK,)))
        ids += driver.announced[accepted.generation_id]
    assert len(set(ids)) == 360

    def claim(number: int) -> list[tuple[str, str]]:
        owner = f"worker {number}"
        taken = (catalog.parts.lease(one, owner=owner, lease_s=LEASE_S) for one in ids)
        return [(part.part_id, owner) for part in taken if part is not None]

    with ThreadPoolExecutor(6) as pool:
        claimed = [one for batch in pool.map(claim, range(6)) for one in batch]
    assert sorted(part_id for part_id, _ in claimed) == sorted(ids)
    assert catalog.operations.counts().stages[Stage.PARSE].leased == 360


def test_racing_owners_of_one_part_get_one_lease_each_expiry(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted: Accepted = driver.accept()
    part_id = driver.announced[accepted.generation_id][0]
    for attempt in range(1, MAX_ATTEMPTS + 1):
        with ThreadPoolExecutor(6) as pool:
            taken = list(pool.map(lambda _: lease(catalog, part_id), range(12)))
        found = [part for part in taken if part is not None]
        assert Counter(part.attempt for part in found) == {attempt: 1}
        clock.advance(LEASE_S)
