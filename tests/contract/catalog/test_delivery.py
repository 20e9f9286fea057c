"""The outbox and the sweeper: whatever the broker loses, every due part is announced again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.adapters.catalog import SqlCatalog
from tests.contract.catalog.conftest import REPUBLISH_AFTER_S
from tests.contract.catalog.driver import LEASE_S, Driver
from tests.fakes.clock import FakeClock

HOUR_S = 3_600.0
CLAIM_S = 5.0


def test_a_claimed_message_is_skipped_until_the_claim_runs_out(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept("a.pdf")
    clock.advance(REPUBLISH_AFTER_S)
    assert catalog.parts.sweep() == 1
    (message,) = catalog.parts.take_outbox(10)
    assert message.queue == "bulk"
    assert catalog.parts.take_outbox(10) == []
    clock.advance(CLAIM_S)
    (again,) = catalog.parts.take_outbox(10)
    assert again == message
    catalog.parts.mark_sent([again.message_id])
    clock.advance(CLAIM_S)
    assert catalog.parts.take_outbox(10) == []
    assert driver.record(accepted).status == "queued"


def test_messages_come_oldest_first_and_in_pages(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    generations = [driver.accept(f"{number}.pdf").generation_id for number in range(5)]
    part_ids = [driver.announced[generation_id][0] for generation_id in generations]
    clock.advance(REPUBLISH_AFTER_S)
    catalog.parts.sweep()
    pages = [catalog.parts.take_outbox(2) for _ in range(4)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [message.part_id for page in pages for message in page] == part_ids


def test_a_message_the_broker_lost_is_sent_again(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    (part_id,) = driver.announced[accepted.generation_id]
    clock.advance(REPUBLISH_AFTER_S - 0.001)
    assert catalog.parts.sweep() == 0
    clock.advance(0.001)
    assert catalog.parts.sweep() == 1
    assert driver.listen(accepted.generation_id) == [part_id]
    driver.lease(accepted)
    clock.advance(REPUBLISH_AFTER_S)
    assert catalog.parts.sweep() == 0  # it is being worked on


def test_a_message_sent_late_cannot_hide_a_new_one(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    clock.advance(REPUBLISH_AFTER_S)
    catalog.parts.sweep()
    (stale,) = catalog.parts.take_outbox(1)
    part = driver.lease(accepted)
    catalog.parts.release(part, retry_at=clock.now(), code="stopped", message="m")
    catalog.parts.mark_sent([stale.message_id])
    assert [message.part_id for message in catalog.parts.take_outbox(1)] == [part.part_id]


def test_two_relays_never_take_the_same_message(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    for number in range(60):
        driver.accept(f"{number}.pdf")
    clock.advance(REPUBLISH_AFTER_S)
    assert catalog.parts.sweep() == 60
    with ThreadPoolExecutor(4) as pool:
        taken = [message.message_id
                 for batch in pool.map(lambda _: catalog.parts.take_outbox(7), range(40))
                 for message in batch]  # fmt: skip
    rest = [message.message_id for message in catalog.parts.take_outbox(100)]
    assert len(taken) == len(set(taken))
    assert len(set(taken) | set(rest)) == 60


def test_expired_leases_are_announced_again(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    assert catalog.parts.sweep() == 0
    clock.advance(LEASE_S)
    assert catalog.operations.counts().expired_leases == 1
    assert catalog.parts.sweep() == 1
    assert catalog.operations.counts().expired_leases == 0
    assert driver.listen(accepted.generation_id) == [part.part_id]
    assert driver.lease(accepted).attempt == 2


def test_two_sweepers_at_once_write_each_message_once(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    for number in range(40):
        driver.lease(driver.accept(f"{number}.pdf"))
    clock.advance(LEASE_S)
    with ThreadPoolExecutor(4) as pool:
        written = sum(pool.map(lambda _: catalog.parts.sweep(), range(8)))
    written += catalog.parts.sweep()
    messages = catalog.parts.take_outbox(1_000)
    assert written == 40
    assert len({message.part_id for message in messages}) == len(messages) == 40


def test_a_sweep_is_bounded(driver: Driver, catalog: SqlCatalog, clock: FakeClock) -> None:
    for number in range(7):
        driver.lease(driver.accept(f"{number}.pdf"))
    clock.advance(LEASE_S)
    written = []
    while count := catalog.parts.sweep(limit=3):
        written.append(count)
    assert written == [3, 3, 1]


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_clock_that_jumps_delays_nobody(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock, jump_s: float
) -> None:
    """One part of each kind: leased, sent, claimed, backing off. All come back within minutes."""
    leased = driver.lease(driver.accept("leased.pdf"))
    sent = driver.announced[driver.accept("sent.pdf").generation_id][0]
    failed = driver.lease(driver.accept("failed.pdf"))
    catalog.parts.fail(failed, code="parser_crashed", message="m", hint=None, is_final=False)
    clock.advance(REPUBLISH_AFTER_S)
    catalog.parts.sweep()
    claimed = {message.part_id for message in catalog.parts.take_outbox(10)}
    assert claimed == {sent, failed.part_id}
    clock.jump(jump_s)
    seen = set()
    for _ in range(10):
        clock.advance(LEASE_S / 2)
        catalog.parts.sweep()
        messages = catalog.parts.take_outbox(100)
        seen |= {message.part_id for message in messages}
        catalog.parts.mark_sent([message.message_id for message in messages])
    assert seen == {leased.part_id, sent, failed.part_id}
    for part_id in seen:
        assert catalog.parts.lease(part_id, owner="worker", lease_s=LEASE_S) is not None


def test_a_jumping_clock_does_not_take_a_part_from_a_worker_that_reports(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    part = driver.lease(driver.accept())
    clock.jump(-HOUR_S)
    part = catalog.parts.renew(part, lease_s=LEASE_S)
    catalog.parts.sweep()
    driver.complete(part)
