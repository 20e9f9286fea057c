"""The same requests give the same tokens however they are scheduled.

The fake model's tokens depend on all KV that it sees, and the harness compares them at every step
with what the model writes alone, so each example is compared with every other one.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scheduler_harness import SchedulerHarness

SYSTEM = [1, 2, 3, 4, 5, 6, 7, 8]

tokens = st.lists(st.integers(0, 2), max_size=12)
# (prompt, output tokens, steps that pass before the next request comes)
arrivals = st.lists(
    st.tuples(
        st.builds(lambda start, rest: SYSTEM[:start] + rest or [9], st.integers(0, 8), tokens),
        st.integers(1, 10),
        st.integers(0, 6),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200)
@given(
    arrivals=arrivals,
    block_size=st.sampled_from([1, 2, 3, 4, 16]),
    max_num_seqs=st.integers(1, 8),
    more_budget=st.integers(0, 32),
    spare_blocks=st.integers(0, 20),
    growth_tokens=st.sampled_from([0, 0, 4]),
    enable_prefix_caching=st.booleans(),
    continuous=st.booleans(),
    preempt_at=st.sets(st.integers(0, 60), max_size=8),
)
def test_output_does_not_depend_on_how_it_was_scheduled(
    arrivals: list[tuple[list[int], int, int]],
    block_size: int,
    max_num_seqs: int,
    more_budget: int,
    spare_blocks: int,
    growth_tokens: int,
    enable_prefix_caching: bool,
    continuous: bool,
    preempt_at: set[int],
) -> None:
    longest = max(len(prompt) + num_output for prompt, num_output, _ in arrivals)
    world = SchedulerHarness(
        -(-longest // block_size) + spare_blocks,
        block_size=block_size,
        max_num_seqs=max_num_seqs,
        budget=max_num_seqs + more_budget,
        growth_tokens=growth_tokens,
        enable_prefix_caching=enable_prefix_caching,
        continuous=continuous,
    )
    requests, num_steps = [], 0
    for prompt, num_output, pause in arrivals:
        requests.append(world.add(prompt, num_output))
        for _ in range(pause):
            if num_steps in preempt_at and world.scheduler.num_running:
                running = [one for one in world.scheduler.requests if one.block_table]
                world.scheduler.preempt(running[num_steps % len(running)])
            world.step()
            num_steps += 1
    world.drain()
    assert [len(request.output_token_ids) for request in requests] == [
        num_output for _, num_output, _ in arrivals
    ]


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 7, 16, 100])
@pytest.mark.parametrize("enable_prefix_caching", [True, False])
def test_any_chunk_size_gives_the_same_output(budget: int, enable_prefix_caching: bool) -> None:
    world = SchedulerHarness(
        40, max_num_seqs=1, budget=budget, enable_prefix_caching=enable_prefix_caching
    )
    for _ in range(2):  # the second finds the first in the cache, or does not
        world.add(list(range(33)), 6)
        world.drain()
    first, second = world.ended
    assert first.output_token_ids == second.output_token_ids
    assert second.num_cached_tokens == (32 if enable_prefix_caching else 0)
