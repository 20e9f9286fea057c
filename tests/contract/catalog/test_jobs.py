"""Retry and cancel."""

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.domain.documents import Accepted, NewPart, PartResult, Stage
from core.errors import Conflict, LeaseLost, NotFound
from tests.contract.catalog.driver import ACTIVATE, CHUNK, LEASE_S, NUM_CHUNKS, Driver
from tests.fakes.clock import FakeClock


def fail(driver: Driver, accepted: Accepted, stage: Stage, code: str = "corrupt") -> None:
    part = driver.run_to(accepted, stage)
    driver.catalog.parts.fail(part, code=code, message="m", hint=None, is_final=True)


def test_a_retried_job_starts_over_with_no_attempts(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept()
    fail(driver, accepted, Stage.PARSE)
    job = catalog.parts.retry(principal, accepted.job_id)
    assert (job.status, job.problem, job.finished_at) == ("queued", None, None)
    driver.listen(accepted.generation_id)
    part = driver.run_to(accepted, Stage.ACTIVATE)
    assert part.attempt == 1
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS)
    assert driver.record(accepted).status == "ready"


def test_only_what_failed_is_done_again(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept()
    rest = tuple(NewPart(Stage.PARSE, first, first + 31) for first in (33, 65))
    driver.complete(driver.lease(accepted), PartResult(same_stage=rest, next_stage=(CHUNK,)))
    fail(driver, accepted, Stage.PARSE)
    job = catalog.parts.retry(principal, accepted.job_id)
    assert job.stages == {"parse": {"done": 1, "waiting": 2}}
    driver.listen(accepted.generation_id)
    for _ in range(2):
        driver.complete(driver.lease(accepted), PartResult(next_stage=(CHUNK,)))
    assert driver.lease(accepted).stage is Stage.CHUNK


@pytest.mark.parametrize("stage", [Stage.INDEX, Stage.ACTIVATE])
@pytest.mark.parametrize("is_purged", [False, True])
def test_a_retry_indexes_again_since_the_points_may_be_gone(
    driver: Driver,
    catalog: SqlCatalog,
    principal: Principal,
    clock: FakeClock,
    stage: Stage,
    is_purged: bool,
) -> None:
    accepted = driver.accept()
    embed = driver.run_to(accepted, Stage.EMBED)
    batches = tuple(NewPart(Stage.INDEX, first, first) for first in range(3))
    driver.complete(embed, PartResult(next_stage=batches))
    done = PartResult(next_stage=(ACTIVATE,))
    for _ in range(3 if stage is Stage.ACTIVATE else 2):
        driver.complete(driver.lease(accepted), done)
    fail(driver, accepted, stage, code="internal_error")
    assert driver.record(accepted).status == "quarantined"
    if is_purged:
        clock.advance(60.0)
        (dead,) = catalog.operations.dead_generations(older_than_s=60.0, limit=9)
        catalog.operations.mark_purged(dead.generation_id)
        assert not catalog.operations.is_live_generation(*_ids(accepted))
    job = catalog.parts.retry(principal, accepted.job_id)
    assert job.stages["index"] == {"waiting": 3}
    assert "activate" not in job.stages
    assert catalog.operations.is_live_generation(*_ids(accepted))
    driver.listen(accepted.generation_id)
    for _ in range(3):
        part = driver.lease(accepted)
        assert (part.stage, part.attempt) == (Stage.INDEX, 1)
        driver.complete(part, done)
    part = driver.lease(accepted)
    assert part.stage is Stage.ACTIVATE
    assert catalog.parts.activate(part, num_points=NUM_CHUNKS)
    assert driver.record(accepted).status == "ready"


def test_terms_of_index_parts_are_not_counted_twice_by_a_retry(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.accept()
    driver.complete(
        driver.run_to(accepted, Stage.INDEX), PartResult(next_stage=(ACTIVATE,), num_terms=900)
    )
    fail(driver, accepted, Stage.ACTIVATE)
    catalog.parts.retry(principal, accepted.job_id)
    driver.listen(accepted.generation_id)
    index = PartResult(next_stage=(ACTIVATE,), num_terms=900)
    driver.complete(driver.lease(accepted), index)
    catalog.parts.activate(driver.lease(accepted), num_points=NUM_CHUNKS)
    assert catalog.operations.average_terms() == pytest.approx((100 + 900) / NUM_CHUNKS)


def test_a_retry_waits_for_a_purge_that_is_under_way(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    accepted = driver.accept()
    fail(driver, accepted, Stage.INDEX)
    clock.advance(60.0)
    assert len(catalog.operations.dead_generations(older_than_s=60.0, limit=9)) == 1
    with pytest.raises(Conflict):
        catalog.parts.retry(principal, accepted.job_id)
    clock.advance(60.0)  # whoever wanted to purge is gone
    assert catalog.parts.retry(principal, accepted.job_id).status == "processing"
    catalog.operations.mark_purged(accepted.generation_id)  # its late report changes nothing
    assert catalog.operations.is_live_generation(*_ids(accepted))


@pytest.mark.parametrize("state", ["queued", "leased", "ready", "replaced"])
def test_there_is_nothing_to_retry(
    driver: Driver, catalog: SqlCatalog, principal: Principal, state: str
) -> None:
    accepted = driver.ingest() if state == "ready" else driver.accept()
    if state == "leased":
        driver.lease(accepted)
    if state == "replaced":
        fail(driver, accepted, Stage.PARSE)
        driver.accept(content="two")
    with pytest.raises(Conflict):
        catalog.parts.retry(principal, accepted.job_id)


def test_cancel_stops_the_work_and_a_retry_resumes_it(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    accepted = driver.accept()
    rest = tuple(NewPart(Stage.PARSE, first, first + 31) for first in (33, 65))
    driver.complete(driver.lease(accepted), PartResult(same_stage=rest, next_stage=(CHUNK,)))
    running = driver.lease(accepted)
    job = catalog.parts.cancel(principal, accepted.job_id)
    assert (job.status, job.finished_at) == ("quarantined", clock.now())
    assert job.problem is not None
    assert job.problem.code == "cancelled"
    for write in (
        lambda: catalog.parts.renew(running, lease_s=LEASE_S),
        lambda: catalog.parts.complete(running, PartResult(next_stage=(CHUNK,))),
    ):
        with pytest.raises(LeaseLost):
            write()
    assert catalog.parts.sweep() == 0
    assert driver.record(accepted).status == "quarantined"
    with pytest.raises(Conflict):
        catalog.parts.cancel(principal, accepted.job_id)

    assert catalog.parts.retry(principal, accepted.job_id).problem is None
    with pytest.raises(LeaseLost):  # from before the cancel
        catalog.parts.complete(running, PartResult(next_stage=(CHUNK,)))
    driver.listen(accepted.generation_id)
    for _ in range(2):
        driver.complete(driver.lease(accepted), PartResult(next_stage=(CHUNK,)))
    assert driver.lease(accepted).stage is Stage.CHUNK


def test_cancelling_a_replacement_leaves_the_active_version(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    new = driver.accept(content="two")
    catalog.parts.cancel(principal, new.job_id)
    assert driver.shows(old)
    assert (driver.record(new).status, driver.record(new).active_version_seq) == ("quarantined", 1)


@pytest.mark.parametrize("state", ["ready", "failed", "replaced"])
def test_a_finished_job_cannot_be_cancelled(
    driver: Driver, catalog: SqlCatalog, principal: Principal, state: str
) -> None:
    accepted = driver.ingest() if state == "ready" else driver.accept()
    if state == "failed":
        fail(driver, accepted, Stage.PARSE)
    if state == "replaced":
        driver.accept(content="two")
    with pytest.raises(Conflict):
        catalog.parts.cancel(principal, accepted.job_id)


def test_jobs_one_may_not_see_are_not_found(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    accepted = driver.accept()
    narrow = Principal(principal.tenant_id, "narrow", frozenset(Scope), frozenset({"plant"}))
    for somebody in (stranger, narrow):
        for act in (catalog.parts.retry, catalog.parts.cancel):
            with pytest.raises(NotFound):
                act(somebody, accepted.job_id)
    catalog.intake.delete(principal, accepted.document_id, tombstone=False)
    for act in (catalog.parts.retry, catalog.parts.cancel):
        with pytest.raises(NotFound):
            act(principal, accepted.job_id)


def _ids(accepted: Accepted) -> tuple[str, str]:
    return accepted.document_id, accepted.generation_id
