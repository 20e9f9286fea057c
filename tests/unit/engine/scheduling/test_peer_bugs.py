"""Bugs filed against other engines, each as a test of ours."""

import pytest

from engine.request import RequestStatus
from tests.scheduler_harness import SchedulerHarness


def prompt(num_tokens: int, start: int = 0) -> list[int]:
    return list(range(start, start + num_tokens))


@pytest.mark.parametrize("num_output_before", range(1, 9))
def test_nano_vllm_211_233_preempt_then_cache_hit(num_output_before: int) -> None:
    """Index error when a preempted request, longer than its prompt, hits the prefix cache: with
    any number of output tokens, on and off a block border, and a second time."""
    world = SchedulerHarness()
    request = world.add(prompt(7), 12)
    for _ in range(num_output_before):
        world.step()
    num_known = request.num_tokens
    world.scheduler.preempt(request)
    world.step()
    # The last known token was never computed, so that its block cannot be cached.
    assert request.num_computed_tokens == num_known
    assert world.scheduler.num_recomputed_tokens == (num_known - 1) % 4
    world.scheduler.preempt(request)
    world.drain()
    assert len(request.output_token_ids) == 12


@pytest.mark.parametrize("num_blocks", [1, 2, 5])
def test_nano_vllm_144_prompt_of_whole_blocks_hits_completely(num_blocks: int) -> None:
    """A query of zero tokens, thus no logits. Also when the twin still runs, and when the pool
    has no room for the copy."""
    for usable in (64, num_blocks + 1):
        world = SchedulerHarness(usable)
        first = world.add(prompt(4 * num_blocks), 3)
        world.step()
        second = world.add(prompt(4 * num_blocks), 3)
        world.drain()
        third = world.add(prompt(4 * num_blocks), 3)
        world.drain()
        assert first.output_token_ids == second.output_token_ids == third.output_token_ids
        assert third.num_cached_tokens in {4 * num_blocks - 1, 4 * num_blocks - 4}


def test_sglang_34149_abort_races_the_last_prefill_chunk() -> None:
    """The token sampled by a chunk that was under way when its request was aborted leaks into the
    output, or its blocks leak."""
    world = SchedulerHarness(budget=8)
    request = world.add(prompt(12), 4)
    bystander = world.add(prompt(3, 1000), 4)
    world.step()
    plan = world.schedule()
    assert [one.request for one in plan.sequences if one.samples] == [request, bystander]
    output = world.runner.run(plan)
    world.abort(request)
    sampled = world.scheduler.complete(plan, output)
    assert [one for one, _ in sampled] == [bystander]
    assert request.output_token_ids == []
    world.check()
    world.drain()
    assert request.output_token_ids == []


def test_llama_cpp_11414_24496_mini_sglang_cancel_does_nothing() -> None:
    """A cancelled request goes on computing: wherever it is, it stops and its blocks are free."""
    world = SchedulerHarness(max_num_seqs=2, budget=8)
    decoding = world.add(prompt(5), 50)
    world.step()
    prefilling = world.add(prompt(100, 1000), 50)
    queued = world.add(prompt(5, 2000), 50)
    world.step()
    preempted = decoding
    assert (decoding.num_uncomputed_tokens, prefilling.num_uncomputed_tokens > 1) == (1, True)
    assert queued.status is RequestStatus.WAITING

    world.abort(queued)
    world.abort(prefilling)
    world.scheduler.preempt(preempted)
    world.abort(preempted)
    computed = world.runner.num_computed_tokens
    assert world.step() is None
    assert world.runner.num_computed_tokens == computed
    world.check_drained()

    decoding = world.add(prompt(5), 50)
    world.step()
    world.abort(decoding)
    assert world.step() is None
    world.check_drained()


def test_vllm_21793_admission_without_room_for_the_whole_prompt() -> None:
    """Two long prompts are admitted chunk by chunk, meet in the middle of the pool, and throw each
    other out."""
    world = SchedulerHarness(20, budget=8)
    first = world.add(prompt(60), 2)
    second = world.add(prompt(60, 1000), 2)
    while not first.is_finished:
        world.step()
        if not first.is_finished:
            assert second.block_table == []
    world.drain()
    assert world.scheduler.num_preemptions == 0


@pytest.mark.parametrize("enable_prefix_caching", [True, False])
def test_vllm_54644_preemption_thrash(enable_prefix_caching: bool) -> None:
    """Requests that do not fit beside each other take turns throwing each other out, and 10-23 %
    of the work is done twice. Here the pool has room for less than half of the seats."""

    def recomputed_share(growth_tokens: int) -> float:
        world = SchedulerHarness(
            75,
            block_size=16,
            max_num_seqs=16,
            budget=64,
            growth_tokens=growth_tokens,
            enable_prefix_caching=enable_prefix_caching,
        )
        for number in range(32):
            world.add(prompt(120, 1000 * number), 40 + number)
        world.drain()
        assert world.scheduler.num_preemptions > 0, "the pool was never the limit"
        return world.scheduler.num_recomputed_tokens / world.runner.num_computed_tokens

    assert recomputed_share(growth_tokens=0) > 0.10, "this load does not thrash"
    assert recomputed_share(growth_tokens=16) < 0.05


def test_vllm_35852_one_that_does_not_fit_stops_the_queue() -> None:
    """The head of the queue waits for blocks, and small requests behind it wait for nothing."""
    world = SchedulerHarness(20, max_num_seqs=4, budget=100)
    running = world.add(prompt(40), 30)
    world.step()
    head = world.add(prompt(60, 1000), 2)
    small = world.add(prompt(4, 2000), 2)
    world.step()
    assert small.status is RequestStatus.RUNNING
    assert head.status is RequestStatus.WAITING
    world.drain()
    assert world.ended == [small, running, head]
