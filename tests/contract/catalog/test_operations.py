"""Leadership, counts, heartbeats, audit."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import DocumentStatus, NewPart, PartResult, Stage
from core.domain.operations import Heartbeat, IngestCounts, StageCounts
from tests.contract.catalog.driver import CHUNK, EMBED, NUM_CHUNKS, Driver
from tests.fakes.clock import FakeClock

TERM_S = 15.0


def lead(catalog: SqlCatalog, owner: str, name: str = "sweeper") -> bool:
    return catalog.operations.take_leadership(name, owner=owner, lease_s=TERM_S)


def test_one_leads_until_the_lease_ends(catalog: SqlCatalog, clock: FakeClock) -> None:
    assert lead(catalog, "a")
    assert not lead(catalog, "b")
    assert lead(catalog, "b", name="other")
    clock.advance(TERM_S - 1)
    assert lead(catalog, "a")  # stays
    clock.advance(TERM_S - 0.001)
    assert not lead(catalog, "b")
    clock.advance(0.001)
    assert lead(catalog, "b")
    assert not lead(catalog, "a")


def test_a_dead_leader_does_not_outlive_a_clock_set_back(
    catalog: SqlCatalog, clock: FakeClock
) -> None:
    assert lead(catalog, "a")
    clock.jump(-3_600.0)
    assert lead(catalog, "b")


def test_six_candidates_have_one_leader(catalog: SqlCatalog) -> None:
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda number: lead(catalog, f"{number}"), range(6)))
    assert sum(won) == 1


def test_counts_of_an_empty_catalog(catalog: SqlCatalog) -> None:
    counts = catalog.operations.counts()
    assert counts == IngestCounts(
        documents=dict.fromkeys(DocumentStatus, 0),
        stages={stage: StageCounts() for stage in Stage},
    )


def test_counts_show_each_stage_as_it_is(
    driver: Driver, catalog: SqlCatalog, stranger: Principal, clock: FakeClock
) -> None:
    large = driver.accept("large.pdf")
    rest = tuple(NewPart(Stage.PARSE, first, first + 31) for first in (33, 65))
    driver.complete(
        driver.lease(large), PartResult(same_stage=rest, next_stage=(CHUNK,), page_count=70)
    )
    clock.advance(10.0)
    driver.lease(large)
    driver.ingest("ready.pdf")
    embedding = driver.accept("embedding.pdf")
    clock.advance(5.0)
    driver.run_to(embedding, Stage.EMBED)
    failed = driver.accept("failed.pdf")
    catalog.parts.fail(driver.lease(failed), code="corrupt", message="m", hint=None, is_final=True)
    Driver(catalog, stranger).accept("theirs.pdf")
    clock.advance(5.0)

    mine = catalog.operations.counts(driver.principal.tenant_id)
    assert mine.stages[Stage.PARSE] == StageCounts(
        waiting=1, leased=1, failed=1, pages_waiting=6, oldest_age_s=20.0
    )
    assert mine.stages[Stage.EMBED] == StageCounts(leased=1, oldest_age_s=5.0)
    assert (mine.queue_depth, mine.oldest_age_s, mine.outbox_pending) == (3, 20.0, 0)
    assert (mine.num_chunks_active, mine.num_pages_active) == (NUM_CHUNKS, 3)
    shown = {status.value: num for status, num in mine.documents.items() if num}
    assert shown == {"processing": 2, "ready": 1, "corrupt": 1}

    both = catalog.operations.counts()
    assert (both.queue_depth, both.documents[DocumentStatus.QUEUED]) == (4, 1)
    assert both.stages[Stage.PARSE].pages_waiting == 6 + 32


def test_outbox_pending_counts_what_no_relay_has_sent(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    for number in range(3):
        driver.accept(f"{number}.pdf")
    assert catalog.operations.counts().outbox_pending == 0
    clock.advance(3_600.0)
    assert catalog.parts.sweep() == 3
    assert catalog.operations.counts().outbox_pending == 3
    catalog.parts.take_outbox(10)
    assert catalog.operations.counts().outbox_pending == 3


@pytest.mark.parametrize("end", ["delete", "replace", "cancel"])
def test_work_that_is_given_up_leaves_the_queue(
    driver: Driver, catalog: SqlCatalog, principal: Principal, end: str
) -> None:
    accepted = driver.accept()
    chunk = driver.run_to(accepted, Stage.CHUNK)
    driver.complete(chunk, PartResult(next_stage=(EMBED,), num_chunks=NUM_CHUNKS))
    assert catalog.operations.counts().queue_depth == 1
    if end == "delete":
        catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    elif end == "replace":
        driver.accept(content="two")
    else:
        catalog.parts.cancel(principal, accepted.job_id)
    assert catalog.operations.counts().queue_depth == (1 if end == "replace" else 0)
    assert catalog.operations.counts().stages[Stage.EMBED].waiting == 0


def test_a_clock_set_back_shows_no_negative_age(
    driver: Driver, catalog: SqlCatalog, clock: FakeClock
) -> None:
    driver.accept()
    clock.jump(-60.0)
    assert catalog.operations.counts().oldest_age_s == 0.0


def test_heartbeats_show_the_last_word_of_each_living_process(
    catalog: SqlCatalog, clock: FakeClock
) -> None:
    worker = Heartbeat(
        process="host:1:worker", role="worker", pid=1, host="host", started_at=clock.now(),
        seen_at=clock.now(), version="0.1",
    )  # fmt: skip
    sweeper = replace(worker, process="host:2:sweeper", role="sweeper", pid=2)
    catalog.operations.beat(worker)
    catalog.operations.beat(sweeper)
    clock.advance(20.0)
    later = replace(worker, seen_at=clock.now(), doing="doc_1", rss_bytes=5_000_000_000)
    catalog.operations.beat(later)
    assert catalog.operations.heartbeats(max_age_s=20.0) == [sweeper, later]
    assert catalog.operations.heartbeats(max_age_s=19.0) == [later]
    clock.advance(2 * 86_400.0)
    newer = replace(sweeper, process="host:3:sweeper", seen_at=clock.now())
    catalog.operations.beat(newer)
    assert catalog.operations.heartbeats(max_age_s=1e9) == [newer]  # the dead are forgotten


def test_audit_keeps_who_did_what(
    catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    catalog.operations.audit(
        principal, action="documents.delete", target="doc_1", request_id="req_1", outcome="ok"
    )
    (row,) = catalog._db.read(lambda tx: tx.exec_driver_sql("SELECT * FROM audit").mappings().all())
    assert (row["tenant_id"], row["subject"]) == (principal.tenant_id, principal.subject)
    assert (row["action"], row["target"], row["request_id"], row["outcome"]) == (
        "documents.delete", "doc_1", "req_1", "ok",
    )  # fmt: skip
