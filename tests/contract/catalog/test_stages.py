"""How parts follow parts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal
from core.domain.documents import NewPart, PartResult, Stage
from core.errors import InternalError
from tests.contract.catalog.driver import CHUNK, EMBED, LEASE_S, Driver
from tests.fakes.clock import FakeClock

MAX_ANNOUNCED = 64


def pages(first: int, count: int, size: int = 32) -> tuple[NewPart, ...]:
    return tuple(
        NewPart(Stage.PARSE, start, start + size - 1)
        for start in range(first, first + count * size, size)
    )


def test_a_stage_opens_when_the_last_part_of_the_one_before_is_done(driver: Driver) -> None:
    accepted = driver.accept()
    result = PartResult(same_stage=pages(33, 2), next_stage=(CHUNK,), page_count=96)
    driver.complete(driver.lease(accepted), result)
    first, second = driver.lease(accepted), driver.lease(accepted)
    assert [(part.first, part.last) for part in (first, second)] == [(33, 64), (65, 96)]
    assert [part.page_count for part in (first, second)] == [96, 96]
    driver.complete(second, PartResult(next_stage=(CHUNK,)))
    assert driver.announced[accepted.generation_id] == []
    driver.complete(first, PartResult(next_stage=(CHUNK,)))
    assert driver.lease(accepted).stage is Stage.CHUNK


def test_facts_of_the_parts_add_up(driver: Driver, catalog: SqlCatalog) -> None:
    accepted = driver.accept()
    driver.complete(
        driver.lease(accepted),
        PartResult(
            same_stage=pages(33, 1), next_stage=(CHUNK,), page_count=40, title=" A\0 title ",
            language="en", failed_pages=(2, 7), num_pages_done=32, warnings=("w1", "w2"),
            parser_fingerprint="parser-1",
        ),
    )  # fmt: skip
    driver.complete(
        driver.lease(accepted),
        PartResult(
            next_stage=(CHUNK,), failed_pages=(40, 7), num_pages_done=8, warnings=("w2", "w3")
        ),
    )
    driver.complete(driver.lease(accepted), PartResult(next_stage=(EMBED,), num_chunks=9))
    record = driver.record(accepted)
    assert (record.title, record.pages_total, record.pages_done) == ("A title", 40, 40)
    assert record.failed_pages == (2, 7, 40)
    assert record.warnings == ("w1", "w2", "w3")
    assert record.num_chunks == 9
    with catalog.snapshot(driver.principal) as snapshot:
        job = snapshot.job(accepted.job_id)
    assert job.stages == {"parse": {"done": 2}, "chunk": {"done": 1}, "embed": {"waiting": 1}}


def test_the_file_name_stays_the_title_when_the_parser_knows_none(driver: Driver) -> None:
    accepted = driver.accept("hr/Old name.pdf")
    driver.complete(driver.lease(accepted), PartResult(next_stage=(CHUNK,), title="  "))
    assert driver.record(accepted).title == "Old name"


def test_a_large_document_is_announced_64_parts_at_a_time(
    driver: Driver, catalog: SqlCatalog
) -> None:
    accepted = driver.accept()
    waiting = driver.announced[accepted.generation_id]
    result = PartResult(same_stage=pages(33, 90), next_stage=(CHUNK,), page_count=2_912)
    driver.complete(driver.lease(accepted), result)
    assert len(waiting) == MAX_ANNOUNCED
    assert catalog.parts.sweep() == 0
    part = driver.lease(accepted)
    assert catalog.parts.sweep() == 1
    assert len(driver.listen(accepted.generation_id)) == 1
    done = 0
    while part.stage is Stage.PARSE:
        driver.complete(part, PartResult(next_stage=(CHUNK,)))
        done += 1
        assert len(waiting) <= MAX_ANNOUNCED
        part = driver.lease(accepted)
    assert done == 90
    assert part.stage is Stage.CHUNK


def test_a_small_document_is_not_kept_waiting_by_a_large_one(
    driver: Driver, catalog: SqlCatalog
) -> None:
    large = driver.accept("large.pdf")
    part = driver.lease(large)
    catalog.parts.complete(
        part, PartResult(same_stage=pages(33, 500), next_stage=(CHUNK,), page_count=16_000)
    )
    small = driver.accept("small.pdf")
    announced = driver.announced[small.generation_id]
    assert len(announced) == MAX_ANNOUNCED + 1


def test_the_same_part_is_not_added_twice(driver: Driver) -> None:
    accepted = driver.accept()
    extra = pages(33, 1)
    driver.complete(
        driver.lease(accepted), PartResult(same_stage=extra + extra, next_stage=(CHUNK,))
    )
    assert len(driver.announced[accepted.generation_id]) == 1
    driver.complete(driver.lease(accepted), PartResult(same_stage=extra, next_stage=(CHUNK,)))
    assert driver.lease(accepted).stage is Stage.CHUNK


@pytest.mark.parametrize(
    "result",
    [
        PartResult(),
        PartResult(next_stage=pages(1, 1)),
        PartResult(next_stage=(CHUNK, EMBED)),
        PartResult(same_stage=(EMBED,), next_stage=(CHUNK,)),
    ],
    ids=["nothing follows", "the same stage follows", "two stages follow", "another stage joins"],
)
def test_a_result_that_would_strand_the_document_is_refused(
    driver: Driver, catalog: SqlCatalog, result: PartResult
) -> None:
    accepted = driver.accept()
    part = driver.lease(accepted)
    with pytest.raises(InternalError):
        driver.complete(part, result)
    assert driver.record(accepted).pages_total is None  # nothing of it was written
    driver.complete(catalog.parts.renew(part, lease_s=LEASE_S))


def test_racing_completions_open_the_next_stage_once(driver: Driver, catalog: SqlCatalog) -> None:
    accepted = driver.accept()
    result = PartResult(same_stage=pages(33, 23), next_stage=(CHUNK,), page_count=768)
    driver.complete(driver.lease(accepted), result)
    leased = [driver.lease(accepted) for _ in range(23)]
    with ThreadPoolExecutor(6) as pool:
        done = PartResult(next_stage=(CHUNK,), num_pages_done=1, failed_pages=())
        list(pool.map(lambda part: catalog.parts.complete(part, done), leased))
    driver.listen(accepted.generation_id)
    assert len(driver.announced[accepted.generation_id]) == 1
    assert driver.lease(accepted).stage is Stage.CHUNK
    assert driver.record(accepted).pages_done == 23


def test_racing_completions_and_a_delete_leave_nothing_behind(
    driver: Driver, catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    accepted = driver.accept()
    result = PartResult(same_stage=pages(33, 23), next_stage=(CHUNK,), page_count=768)
    driver.complete(driver.lease(accepted), result)
    leased = [driver.lease(accepted) for _ in range(12)]

    def finish(number: int) -> bool:
        if number == 6:
            catalog.intake.delete(principal, accepted.document_id, tombstone=False)
            return True
        try:
            catalog.parts.complete(leased[number], PartResult(next_stage=(CHUNK,)))
        except Exception as error:  # noqa: BLE001 - judged below
            return type(error).__name__ == "LeaseLost"
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(finish, range(12)))
    clock.advance(3_600)
    assert catalog.parts.sweep() == 0
    assert catalog.parts.take_outbox(100) == []
