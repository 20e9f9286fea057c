"""Who gives way, and how much room it must find."""

from engine.cache.blocks import BlockPool
from engine.cache.sequence_blocks import SequenceBlocks
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.scheduling.preemption import admission_headroom, choose_victim, is_nearly_done


def running(
    blocks: SequenceBlocks,
    name: str,
    prompt: list[int],
    *,
    num_output: int = 0,
    arrival_s: float = 0.0,
    priority: int = 0,
) -> Request:
    """A request whose prompt and output are computed."""
    request = Request(
        name,
        prompt,
        SamplingParams(),
        max_output_tokens=10,
        arrival_s=arrival_s,
        priority=priority,
        output_token_ids=list(range(num_output)),
    )
    assert blocks.admit(request)
    blocks.commit(request, request.num_tokens)
    return request


def victim_of(blocks: SequenceBlocks, *requests: Request) -> str:
    return choose_victim(requests, blocks).request_id


def make_blocks() -> SequenceBlocks:
    return SequenceBlocks(BlockPool(101, 4))


def test_the_cheapest_to_compute_again_gives_way() -> None:
    blocks = make_blocks()
    long = running(blocks, "long", list(range(40)))
    short = running(blocks, "short", list(range(50, 60)))
    assert victim_of(blocks, long, short) == "short"


def test_what_others_hold_too_costs_nothing() -> None:
    blocks = make_blocks()
    shared = list(range(40))
    running(blocks, "holder", [*shared, 1, 2])
    follower = running(blocks, "follower", [*shared, 3, 4, 5])
    alone = running(blocks, "alone", list(range(100, 110)))
    assert victim_of(blocks, alone, follower) == "follower"


def test_the_latest_gives_way_among_equals() -> None:
    blocks = make_blocks()
    requests = [
        running(blocks, f"at {second}", list(range(10 * second, 10 * second + 8)), arrival_s=second)
        for second in (2, 9, 4)
    ]
    assert victim_of(blocks, *requests) == "at 9"


def test_priority_counts_more_than_cost() -> None:
    blocks = make_blocks()
    cheap = running(blocks, "cheap", [1, 2])
    background = running(blocks, "background", list(range(40)), priority=3)
    assert victim_of(blocks, cheap, background) == "background"


def test_one_that_is_nearly_done_gives_way_only_if_there_is_no_other() -> None:
    blocks = make_blocks()
    nearly = running(blocks, "nearly", [1, 2], num_output=9, priority=3)
    other = running(blocks, "other", list(range(40)), num_output=8)
    assert is_nearly_done(nearly)
    assert not is_nearly_done(other)
    assert victim_of(blocks, nearly, other) == "other"
    assert victim_of(blocks, nearly) == "nearly"


def test_headroom_is_waived_when_nothing_runs_and_doubles_with_each_preemption() -> None:
    blocks = make_blocks()
    request = Request("r", [1], SamplingParams(), max_output_tokens=70)
    assert admission_headroom(request, 0, 8, blocks) == 0
    assert admission_headroom(request, 3, 8, blocks) == 3 * 2 + 1
    rooms = []
    for request.num_preemptions in range(1, 6):
        rooms.append(admission_headroom(request, 3, 8, blocks) - 7)
    assert rooms == [4, 8, 16, 18, 18], "no more than its output can still take"
    assert admission_headroom(request, 0, 8, blocks) == 0
