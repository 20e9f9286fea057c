"""What a caller is told of its request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.request import FinishReason


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """Tokens. `num_cached_tokens` of the prompt came from the prefix cache."""

    num_prompt_tokens: int
    num_cached_tokens: int
    num_completion_tokens: int


@dataclass(frozen=True, slots=True)
class RequestTimings:
    """Seconds between the engine's own monotonic stamps; None for what did not happen."""

    queue_s: float | None = None
    first_token_s: float | None = None  # arrival to first token
    total_s: float = 0.0
    inter_token_s: tuple[float, ...] = ()  # from each token to the next


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """One piece of a request's output, in order. `text` is whole characters only and never part of
    a stop string; the pieces joined are the decoded output. The last has a `finish_reason`;
    `error` says why when that is `error`."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    usage: RequestUsage
    finish_reason: FinishReason | None = None
    error: str = ""
    timings: RequestTimings | None = None  # with the last piece


@dataclass(frozen=True, slots=True)
class EngineStats:
    """One reading of the engine. The last group only grows, from the start of the engine.

    num_blocks: of the pool, without the null block; num_used_blocks: those that a request
        references (cached blocks that nobody references are free).
    prefix_cache_queries, prefix_cache_hits: prompt tokens looked up, and found.
    steps_by_tokens: tokens of a step -> how many steps had so many.
    """

    num_running: int = 0
    num_waiting: int = 0
    num_blocks: int = 0
    num_used_blocks: int = 0

    num_preemptions: int = 0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    steps_by_tokens: Mapping[int, int] = field(default_factory=dict)
