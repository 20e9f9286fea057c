"""10,000 random add, abort, preempt, finish and step on one engine: nothing leaks."""

import random
from collections import Counter

import pytest

from engine.errors import PromptTooLong, QueueFull
from engine.request import FinishReason, Request, RequestStatus
from tests.scheduler_harness import SchedulerHarness

NUM_OPERATIONS = 10_000
OPERATIONS = {"step": 60, "add": 30, "abort": 4, "finish": 3, "preempt": 3}
SYSTEM = list(range(40, 50)) * 2


class RandomOperations:
    """`chance` decides everything, so that a failure comes back with its seed."""

    def __init__(self, world: SchedulerHarness, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.done: Counter[str] = Counter()
        self.prompts: list[list[int]] = []

    def run(self, num_operations: int) -> None:
        names, weights = list(OPERATIONS), list(OPERATIONS.values())
        for name in self.chance.choices(names, weights, k=num_operations):
            getattr(self, name)()

    def step(self) -> None:
        self.done["step"] += self.world.step() is not None

    def add(self) -> None:
        try:
            self.world.add(
                self._prompt(),
                self.chance.randint(1, 24),
                salt=self.chance.choice([b"", b"tenant-a", b"tenant-b"]),
                num_shared=self.chance.choice([0, len(SYSTEM)]),
                priority=self.chance.choice([0, 0, 1]),
            )
            self.done["add"] += 1
        except (PromptTooLong, QueueFull) as error:
            self.done[error.code] += 1

    def abort(self) -> None:
        if request := self._any(self.world.scheduler.requests):
            self.done[f"abort {request.status}"] += 1
            self.world.abort(request)

    def finish(self) -> None:
        if request := self._any(self._running()):
            self.done["finish"] += 1
            self.world.finish(request, FinishReason.STOP)

    def preempt(self) -> None:
        if request := self._any(self._running()):
            self.done["preempt"] += 1
            self.world.scheduler.preempt(request)

    def _prompt(self) -> list[int]:
        if self.prompts and self.chance.random() < 0.4:
            return self.chance.choice(self.prompts[-4:])
        num_tokens = self.chance.choice([3, 8, 12, 20, 500])
        question = [self.chance.randrange(50) for _ in range(num_tokens)]
        self.prompts.append(SYSTEM[: self.chance.choice([0, 8, len(SYSTEM)])] + question)
        return self.prompts[-1]

    def _running(self) -> tuple[Request, ...]:
        requests = self.world.scheduler.requests
        return tuple(one for one in requests if one.status is RequestStatus.RUNNING)

    def _any(self, requests: tuple[Request, ...]) -> Request | None:
        return self.chance.choice(requests) if requests else None


@pytest.mark.parametrize(
    ("num_blocks", "enable_prefix_caching"),
    [(48, True), (24, True), (24, False)],
    ids=["roomy", "tight", "tight-uncached"],
)
def test_nothing_leaks_in_10_000_random_operations(
    num_blocks: int, enable_prefix_caching: bool
) -> None:
    world = SchedulerHarness(
        num_blocks,
        max_num_seqs=8,
        budget=24,
        max_waiting=24,
        growth_tokens=0,
        enable_prefix_caching=enable_prefix_caching,
    )
    operations = RandomOperations(world, random.Random(3))
    operations.run(NUM_OPERATIONS)
    num_preempted = world.scheduler.num_preemptions - operations.done["preempt"]
    world.drain()  # 0 blocks held, chains and their KV recomputed equal, outputs as expected

    done = operations.done
    assert min(done["step"], done["add"]) > 500, done
    assert min(done[f"abort {status}"] for status in ("waiting", "running")) > 20, done
    assert min(done["finish"], done["preempt"], done["context_length_exceeded"]) > 50, done
    assert num_preempted > (5 if num_blocks > 24 else 100), "the pool was never the limit"
    assert (world.scheduler.prefix_hit_tokens > 1000) == enable_prefix_caching
    assert (world.runner.num_copied_blocks > 10) == enable_prefix_caching
    world.pool.forget_cached()
    assert sorted(world.pool.blank_blocks()) == list(range(1, num_blocks + 1))
