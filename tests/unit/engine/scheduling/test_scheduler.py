"""The scheduler: the budget, the order of a step, admission, preemption, refusals and ends."""

import pytest

from engine.errors import CacheCorrupted, InvalidRequest, PromptTooLong, QueueFull
from engine.request import FinishReason, RequestStatus
from engine.step import StepPlan
from tests.scheduler_harness import SchedulerHarness


def prompt(num_tokens: int, start: int = 0) -> list[int]:
    """Different `start`s, a multiple of 1000 each, share no prefix."""
    return list(range(start, start + num_tokens))


def shares(plan: StepPlan) -> list[tuple[str, int, int]]:
    return [(one.request.request_id, one.start, one.num_tokens) for one in plan.sequences]


def step(world: SchedulerHarness) -> list[tuple[str, int, int]]:
    plan = world.step()
    assert plan is not None
    return shares(plan)


# ------------------------------------------------------------------------------- one step


def test_nothing_to_do_is_no_plan() -> None:
    assert SchedulerHarness().scheduler.schedule() is None


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks() -> None:
    world = SchedulerHarness(budget=16)
    request = world.add(prompt(40), 2)
    assert [step(world) for _ in range(4)] == [
        [("r0", 0, 16)], [("r0", 16, 16)], [("r0", 32, 8)], [("r0", 40, 1)],
    ]  # fmt: skip
    assert request.is_finished


def test_decodes_come_first_then_chunks_that_run_then_new_requests() -> None:
    world = SchedulerHarness(budget=10)
    world.add(prompt(4), 9)
    step(world)
    world.add(prompt(20, 1000), 9)
    world.add(prompt(6, 2000), 9)
    assert step(world) == [("r0", 4, 1), ("r1", 0, 9)]
    assert step(world) == [("r0", 5, 1), ("r1", 9, 9)]
    assert step(world) == [("r0", 6, 1), ("r1", 18, 2), ("r2", 0, 6)]
    assert step(world) == [("r0", 7, 1), ("r1", 20, 1), ("r2", 6, 1)]


def test_decodes_come_first_whatever_the_order_of_admission() -> None:
    world = SchedulerHarness(budget=10)
    world.add(prompt(4), 9)
    step(world)
    world.add(prompt(20, 1000), 9)
    step(world)
    world.scheduler._running.reverse()
    assert step(world) == [("r0", 5, 1), ("r1", 9, 9)]


def test_decodes_go_on_while_a_long_prompt_is_computed() -> None:
    world = SchedulerHarness(budget=8)
    first = world.add(prompt(3), 20)
    step(world)
    world.add(prompt(100, 1000), 1)
    for num_tokens in range(2, 16):
        step(world)
        assert len(first.output_token_ids) == num_tokens


def test_no_more_run_at_once_than_there_are_seats() -> None:
    world = SchedulerHarness(max_num_seqs=3, budget=100)
    for number in range(5):
        world.add(prompt(2, 1000 * number), 3)
    step(world)
    assert (world.scheduler.num_running, world.scheduler.num_waiting) == (3, 2)
    world.drain()
    assert len(world.ended) == 5


def test_times_are_stamped_once() -> None:
    world = SchedulerHarness(budget=8)
    request = world.add(prompt(12), 3)
    step(world)
    assert request.scheduled_s is not None
    assert request.first_token_s is None
    step(world)
    stamps = (request.scheduled_s, request.first_token_s)
    assert None not in stamps
    world.scheduler.preempt(request)
    world.drain()
    assert (request.scheduled_s, request.first_token_s) == stamps


def test_static_batching_fills_a_batch_and_waits_for_all_of_it() -> None:
    world = SchedulerHarness(max_num_seqs=3, budget=8, continuous=False)
    outputs = (2, 8, 4, 2)
    for number, max_output in enumerate(outputs):
        world.add(prompt(6, 1000 * number), max_output)
    step(world)
    assert (world.scheduler.num_running, world.scheduler.num_waiting) == (3, 1)
    first_batch, last = world.scheduler.requests[:3], world.scheduler.requests[3]
    while not all(request.is_finished for request in first_batch):
        assert last.scheduled_s is None
        step(world)
    assert step(world) == [("r3", 0, 6)]
    world.drain()


def test_a_full_hit_is_a_decode_with_a_copy() -> None:
    world = SchedulerHarness()
    world.add(prompt(8), 1)
    world.drain()
    again = world.add(prompt(8), 1)
    plan = world.step()
    assert plan is not None
    assert (shares(plan), len(plan.copies)) == ([("r1", 7, 1)], 1)
    assert again.num_cached_tokens == 7
    assert again.output_token_ids == world.ended[0].output_token_ids


# ----------------------------------------------------------------------------- admission


def test_a_small_request_passes_one_that_does_not_fit_but_not_for_ever() -> None:
    world = SchedulerHarness(20, max_num_seqs=4, budget=100, max_overtakes=3)
    world.add(prompt(40), 30)
    step(world)
    big = world.add(prompt(44, 1000), 1)
    small = [world.add(prompt(2, 2000 + 1000 * number), 2) for number in range(8)]
    while big.status is RequestStatus.WAITING:
        step(world)
    assert big.scheduled_s is not None
    passed = [one for one in small if (one.scheduled_s or 1e9) < big.scheduled_s]
    assert passed == small[:3], "three passed it, and no fourth"
    world.drain()


def test_a_step_does_not_look_far_behind_requests_that_do_not_fit() -> None:
    world = SchedulerHarness(20, max_num_seqs=4, budget=100, max_overtakes=2)
    world.add(prompt(40), 30)
    step(world)
    for number in range(2):
        world.add(prompt(44, 1000 * (number + 1)), 1)
    small = world.add(prompt(2, 9000), 2)
    step(world)
    assert small.status is RequestStatus.WAITING
    world.drain()


def test_priority_is_served_before_arrival() -> None:
    world = SchedulerHarness(max_num_seqs=1)
    for priority in (2, 0, 1):
        world.add(prompt(2, 1000 * priority), 2, priority=priority)
    world.drain()
    assert [request.priority for request in world.ended] == [0, 1, 2]


def test_a_request_as_large_as_the_pool_runs_alone() -> None:
    world = SchedulerHarness(10)
    small = world.add(prompt(4), 30)
    step(world)
    large = world.add(prompt(30, 1000), 10)
    world.drain()
    assert len(large.output_token_ids) == 10
    assert world.ended == [small, large]


# ----------------------------------------------------------------------------- preemption


def test_a_preempted_request_keeps_its_output_and_goes_on() -> None:
    world = SchedulerHarness()
    request = world.add(prompt(10), 8)
    for _ in range(4):
        step(world)
    output = list(request.output_token_ids)
    world.scheduler.preempt(request)
    assert request.status is RequestStatus.PREEMPTED
    assert (request.block_table, request.num_computed_tokens) == ([], 0)
    assert request.output_token_ids == output
    assert step(world) == [("r0", 12, 2)], "three blocks of it were still cached"
    world.drain()
    assert world.scheduler.num_recomputed_tokens == 1
    assert request.num_cached_tokens == 0


def test_a_dry_pool_preempts_and_everything_still_ends() -> None:
    world = SchedulerHarness(12, max_num_seqs=8, budget=16)
    for number in range(8):
        world.add(prompt(6, 1000 * number), 20)
    world.drain()
    assert world.scheduler.num_preemptions > 0
    assert len(world.ended) == 8


def test_the_victim_is_not_admitted_again_in_the_same_step() -> None:
    world = SchedulerHarness(8, max_num_seqs=4, budget=16)
    requests = [world.add(prompt(6, 1000 * number), 20) for number in range(3)]
    while not world.scheduler.num_preemptions:
        step(world)
    assert [one.status for one in requests].count(RequestStatus.PREEMPTED) == 1


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("num_prompt", "max_output"), [(33, 8), (1, 40), (40, 1)])
def test_a_request_that_can_never_fit_is_refused_at_once(num_prompt: int, max_output: int) -> None:
    for world in (SchedulerHarness(10), SchedulerHarness(max_model_len=40)):
        assert world.scheduler.max_request_tokens == 40
        with pytest.raises(PromptTooLong):
            world.add(prompt(num_prompt), max_output)
        assert world.scheduler.requests == ()
        world.add(prompt(max(1, num_prompt - 1)), max(1, max_output - 1))
        world.drain()


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    world = SchedulerHarness(max_num_seqs=2, max_waiting=3)
    requests = [world.add(prompt(4, 1000 * number), 4) for number in range(5)]
    with pytest.raises(QueueFull) as refusal:
        world.add(prompt(4), 4)
    assert refusal.value.retry_after_s == 1.0
    world.abort(requests[4])
    world.add(prompt(4), 4)
    world.drain()


def test_what_cannot_be_scheduled_is_refused() -> None:
    world = SchedulerHarness()
    with pytest.raises(InvalidRequest, match="no tokens"):
        world.add([], 4)
    with pytest.raises(InvalidRequest, match="at least 1"):
        world.add([1], 0)
    request = world.add([1], 4)
    with pytest.raises(InvalidRequest, match="this id"):
        world.scheduler.add(request)


# ------------------------------------------------------------------------------------ ends


def test_aborting_what_is_not_there_is_nothing() -> None:
    world = SchedulerHarness()
    request = world.add(prompt(4), 2)
    world.drain()
    assert world.scheduler.abort(request.request_id) is None
    assert world.scheduler.abort("never") is None
    assert request.finish_reason is FinishReason.LENGTH


def test_finishing_twice_frees_once() -> None:
    world = SchedulerHarness()
    request = world.add(prompt(4), 3)
    other = world.add(prompt(4), 3)
    step(world)
    world.finish(request, FinishReason.STOP)
    world.scheduler.finish(request, FinishReason.ERROR)
    assert request.finish_reason is FinishReason.STOP
    world.check()
    assert world.scheduler.requests == (other,)


def test_a_lost_step_is_planned_again() -> None:
    world = SchedulerHarness()
    world.add(prompt(8), 2)
    world.drain()
    world.add(prompt(8), 2)
    lost = world.schedule()
    again = world.schedule()
    assert (shares(again), again.copies) == (shares(lost), lost.copies)
    world.run(again)
    world.drain()


def test_its_integrity_check_sees_the_queues_too() -> None:
    world = SchedulerHarness()
    request = world.add(prompt(4), 3)
    step(world)
    world.scheduler.check_integrity()
    world.scheduler._waiting.add(request)
    with pytest.raises(CacheCorrupted, match="two queues"):
        world.scheduler.check_integrity()


def test_counters_of_the_pool() -> None:
    world = SchedulerHarness(10)
    world.add(prompt(9), 3)
    step(world)
    scheduler = world.scheduler
    assert (scheduler.num_blocks, scheduler.num_used_blocks) == (10, 3)
    world.drain()
    assert scheduler.num_used_blocks == 0
    world.add(prompt(9), 1)
    world.drain()
    assert (scheduler.prefix_query_tokens, scheduler.prefix_hit_tokens) == (18, 8)
