"""Request: one API call and the token stream being scheduled for it. Only the owner thread touches
it once it is added."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sampling_params import SamplingParams


class RequestStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


@dataclass(slots=True, eq=False)
class Request:
    """
    The one scheduling rule: a request runs until `num_computed_tokens` (tokens whose KV is in the
    blocks of `block_table`) has caught up with `num_tokens` (all that are known).

    salt, num_shared_prefix_tokens: blocks are hashed with the salt from the first block that
        reaches past the shared prefix (contracts: engine cache salt).
    num_cached_tokens: prompt tokens that the first admission found in the prefix cache.
    """

    request_id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    salt: bytes = b""
    num_shared_prefix_tokens: int = 0
    priority: int = 0  # lower runs first
    arrival_s: float = 0.0  # monotonic
    seed: int = 0  # resolved: sampling.seed, or drawn when the request was made
    max_output_tokens: int = 0  # resolved: max_tokens, capped by the context
    # resolved: stop_token_ids, and the model's own end tokens unless ignore_eos
    end_token_ids: frozenset[int] = frozenset()

    status: RequestStatus = RequestStatus.WAITING
    finish_reason: FinishReason | None = None
    output_token_ids: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    block_table: list[int] = field(default_factory=list)
    block_hashes: list[bytes] = field(default_factory=list)  # chain hashes of its full blocks
    num_preemptions: int = 0
    scheduled_s: float | None = None  # first admission, monotonic
    first_token_s: float | None = None

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_token_ids)

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    @property
    def num_uncomputed_tokens(self) -> int:
        return self.num_tokens - self.num_computed_tokens

    def token_at(self, position: int) -> int:
        """The token at a position of prompt + output."""
        prompt = len(self.prompt_token_ids)
        if position < prompt:
            return self.prompt_token_ids[position]
        return self.output_token_ids[position - prompt]

    def tokens(self, start: int, end: int) -> list[int]:
        """Tokens `[start, end)` of prompt + output."""
        prompt = len(self.prompt_token_ids)
        if end <= prompt:
            return self.prompt_token_ids[start:end]
        if start >= prompt:
            return self.output_token_ids[start - prompt : end - prompt]
        return self.prompt_token_ids[start:] + self.output_token_ids[: end - prompt]

    @property
    def is_finished(self) -> bool:
        return self.status is RequestStatus.FINISHED
