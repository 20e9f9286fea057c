"""Each chore at its own pace; a broken one is tried ever less often and never stops the others."""

import itertools
from functools import partial

from core.errors import BrokerUnavailable
from tests.fakes.clock import FakeClock
from workers.chores import Chore, Schedule


def ticking(clock: FakeClock, schedule: Schedule, seconds: float, step_s: float = 0.25) -> None:
    for _ in range(round(seconds / step_s)):
        schedule.tick()
        clock.advance(step_s)


def test_every_chore_keeps_its_own_pace() -> None:
    clock = FakeClock()
    runs: list[str] = []
    chores = [Chore(name, every, partial(runs.append, name)) for name, every in
              (("often", 1.0), ("seldom", 5.0))]  # fmt: skip
    ticking(clock, Schedule(chores, clock), 10.0)
    assert (runs.count("often"), runs.count("seldom")) == (10, 2)


def test_a_chore_may_ask_to_come_round_sooner() -> None:
    clock = FakeClock()
    waits = [0.0, 0.5]
    runs: list[float] = []

    def run() -> float | None:
        runs.append(clock.monotonic())
        return waits.pop(0) if waits else None

    schedule = Schedule([Chore("purge", 10.0, run)], clock)
    ticking(clock, schedule, 12.0)
    assert runs == [0.0, 0.25, 0.75, 10.75]


def test_hurry_brings_one_chore_forward() -> None:
    clock = FakeClock()
    runs: list[str] = []
    names = ("one", "two")
    chores = [Chore(name, 100.0, partial(runs.append, name)) for name in names]
    schedule = Schedule(chores, clock)
    schedule.tick()
    schedule.hurry("two")
    schedule.tick()
    assert runs == ["one", "two", "two"]


def test_a_failing_chore_is_put_off_longer_each_time_and_recovers() -> None:
    clock = FakeClock()
    attempts: list[float] = []
    others: list[float] = []

    def fail() -> None:
        attempts.append(clock.monotonic())
        if len(attempts) < 5:
            raise BrokerUnavailable("down")

    schedule = Schedule(
        [
            Chore("outbox", 0.25, fail),
            Chore("leases", 1.0, lambda: others.append(clock.monotonic())),
        ],
        clock,
    )
    ticking(clock, schedule, 20.0)
    assert attempts[:5] == [0.0, 1.0, 3.0, 7.0, 15.0]
    assert attempts[5:] == [15.25 + 0.25 * step for step in range(len(attempts) - 5)]
    assert len(others) == 20


def test_a_chore_that_crashes_does_not_end_the_schedule() -> None:
    clock = FakeClock()
    runs: list[int] = []

    def crash() -> None:
        raise ZeroDivisionError

    schedule = Schedule(
        [Chore("bad", 1.0, crash), Chore("good", 1.0, lambda: runs.append(1))], clock
    )
    ticking(clock, schedule, 3.0)
    assert len(runs) == 3


def test_failures_are_never_put_off_for_more_than_a_minute() -> None:
    clock = FakeClock()
    attempts: list[float] = []

    def fail() -> None:
        attempts.append(clock.monotonic())
        raise BrokerUnavailable("down")

    ticking(clock, Schedule([Chore("outbox", 0.25, fail)], clock), 600.0)
    assert max(later - sooner for sooner, later in itertools.pairwise(attempts)) == 60


def test_a_long_chore_rests_in_proportion() -> None:
    clock = FakeClock()
    runs: list[float] = []

    def list_bucket() -> None:
        runs.append(clock.monotonic())
        clock.advance(2.0)

    ticking(clock, Schedule([Chore("list", 3.0, list_bucket, max_duty=0.1)], clock), 45.0, 0.5)
    assert runs[1] == 20.0


def test_a_tick_ends_when_leadership_is_lost() -> None:
    clock = FakeClock()
    runs: list[int] = []
    chores = [Chore(str(number), 1.0, lambda: runs.append(1)) for number in range(3)]
    Schedule(chores, clock).tick(lambda: len(runs) < 2)
    assert len(runs) == 2
