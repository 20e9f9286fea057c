"""The fake runner notices what it is there to notice."""

from collections.abc import Callable

import pytest

from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.step import ScheduledSequence, StepPlan
from tests.fakes.engine_runner import POISON, FakeRunner, continuation
from tests.scheduler_harness import SchedulerHarness

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def placed(table: list[int], *, start: int = 0, prompt: list[int] = PROMPT) -> Request:
    request = Request("r", prompt, SamplingParams(), block_table=table)
    request.num_computed_tokens = start
    return request


def run(runner: FakeRunner, request: Request, num_tokens: int) -> int | None:
    sequence = ScheduledSequence(request, request.num_computed_tokens, num_tokens)
    output = runner.run(StepPlan((sequence,)))
    request.num_computed_tokens += num_tokens
    return output.token_ids.get("r")


def test_chunks_and_placement_do_not_change_the_token() -> None:
    runner = FakeRunner(8, 4)
    (expected,) = continuation(PROMPT, 1, runner.vocab_size)
    assert run(runner, placed([1, 2, 3]), 10) == expected
    chunked = placed([6, 4, 7])
    assert run(runner, chunked, 3) is None
    assert run(runner, chunked, 7) == expected


@pytest.mark.parametrize("table", [[2, 1, 3], [1, 3, 2], [1, 1, 3]], ids=str)
def test_a_wrong_table_changes_the_token(table: list[int]) -> None:
    runner = FakeRunner(8, 4, vocab_size=2**31)
    prompt = [*PROMPT, 7, 7]
    expected = run(runner, placed([1, 2, 3], prompt=prompt), 12)
    assert run(runner, placed([1, 2, 3], start=11, prompt=prompt), 1) == expected
    assert run(runner, placed(table, start=11, prompt=prompt), 1) != expected


def test_equal_tokens_behind_another_prefix_are_other_kv() -> None:
    """A block found by its own tokens alone would be wrong, and is seen to be."""
    runner = FakeRunner(8, 4)
    run(runner, placed([1, 2], prompt=[1, 1, 1, 1, 7, 7, 7, 7]), 8)
    run(runner, placed([3, 4], prompt=[2, 2, 2, 2, 7, 7, 7, 7]), 8)
    assert (runner.kv[2] != runner.kv[4]).all()


def test_copies_are_done_before_anything_is_written() -> None:
    runner = FakeRunner(8, 4)
    run(runner, placed([1, 2], prompt=PROMPT[:8]), 8)
    request = placed([1, 3], start=7, prompt=PROMPT[:8])
    plan = StepPlan((ScheduledSequence(request, 7, 1),), copies=((2, 3),))
    output = runner.run(plan)
    assert output.token_ids["r"] == continuation(PROMPT[:8], 1, runner.vocab_size)[0]
    assert (runner.kv[2] == runner.kv[3]).all()


def test_freed_blocks_are_poisoned_and_seen() -> None:
    world = SchedulerHarness(enable_prefix_caching=False)
    request = world.add(PROMPT, 2)
    world.step()
    last = request.block_table[-1]
    world.abort(request)
    world.add([8, 8], 1)
    world.step()
    assert (world.runner.kv[last] == POISON).all()
    reader = placed([last, world.pool.take()], start=4)
    with pytest.raises(AssertionError, match="freed"):
        run(world.runner, reader, 1)


REFUSALS: dict[str, tuple[Callable[[list[int]], list[int]], int, int, str]] = {
    "null block": (lambda table: [0, *table[1:]], 0, 4, "null block"),
    "shared block": (lambda table: table, 0, 4, "others can see it"),
    "unknown token": (lambda table: table, 8, 3, "not known"),
    "two tokens in a slot": (lambda table: [table[2], table[2]], 0, 8, "one slot"),
}


@pytest.mark.parametrize(
    ("place", "start", "num_tokens", "message"), REFUSALS.values(), ids=REFUSALS
)
def test_plans_that_a_real_runner_would_get_wrong_are_refused(
    place: Callable[[list[int]], list[int]], start: int, num_tokens: int, message: str
) -> None:
    world = SchedulerHarness()
    request = world.add(PROMPT, 2)
    world.step()
    wrong = placed(place(request.block_table), start=start)
    with pytest.raises(AssertionError, match=message):
        run(world.runner, wrong, num_tokens)


def test_a_gap_and_a_plan_over_the_budget_are_refused() -> None:
    runner = FakeRunner(8, 4, max_num_tokens=4)
    request = placed([1, 2, 3])
    with pytest.raises(AssertionError, match="a gap"):
        runner.run(StepPlan((ScheduledSequence(request, 2, 2),)))
    with pytest.raises(AssertionError):
        run(runner, request, 5)
