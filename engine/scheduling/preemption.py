"""Who gives way when the pool runs dry, and how much room it must find before it runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.cache.sequence_blocks import SequenceBlocks
    from engine.request import Request

_NEARLY_DONE = 0.8


def is_nearly_done(request: Request) -> bool:
    """More than 80 % of the output is there: it frees its blocks soonest by finishing."""
    return len(request.output_token_ids) > _NEARLY_DONE * request.max_output_tokens


def choose_victim(running: Iterable[Request], blocks: SequenceBlocks) -> Request:
    """The request whose recomputation costs least, in this order: not one that is nearly done,
    the lowest priority, fewest computed tokens that nobody else holds, the latest arrival."""
    return min(
        running,
        key=lambda request: (
            is_nearly_done(request),
            -request.priority,
            blocks.num_unshared_tokens(request),
            -request.arrival_s,
        ),
    )


def admission_headroom(
    request: Request, num_running: int, growth_tokens: int, blocks: SequenceBlocks
) -> int:
    """Blocks that must stay free when a request is admitted, so that it is not thrown out again at
    once: `growth_tokens` more tokens for each request that runs, and 1 % of the pool.

    Each preemption doubles what a request asks for itself, up to all it can still need, so that
    requests which do not fit beside each other stop changing places (vLLM #54644 paid 10-23 % for
    that). Nothing is asked for when nothing runs: what fits the pool is then always admitted.
    """
    if num_running == 0:
        return 0
    pool = blocks.pool
    growth = pool.num_blocks_for(growth_tokens)
    headroom = num_running * growth + pool.num_usable // 100
    if request.num_preemptions:
        left = request.max_output_tokens - len(request.output_token_ids)
        headroom += min(growth << request.num_preemptions, pool.num_blocks_for(left))
    return headroom
