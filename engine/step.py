"""What travels between the three beats of a step: schedule -> run -> postprocess."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.request import Request

# In the place of a token id: none may be chosen (an empty mask, or logits that are not numbers).
# The engine ends such a request as an error.
NO_TOKEN = -1


@dataclass(frozen=True, slots=True)
class ScheduledSequence:
    """Tokens `[start, start + num_tokens)` of a request are computed in this step.

    `samples` is true when they reach the last known token, so that a new one is chosen.
    """

    request: Request
    start: int
    num_tokens: int

    @property
    def end(self) -> int:
        return self.start + self.num_tokens

    @property
    def samples(self) -> bool:
        return self.end == self.request.num_tokens


@dataclass(frozen=True, slots=True)
class StepPlan:
    """
    sequences: each request at most once; decodes first. Their block tables already have room.
    copies: (from block, to block) to be done before anything is written: copy-on-write tails.
    """

    sequences: tuple[ScheduledSequence, ...]
    copies: tuple[tuple[int, int], ...] = ()

    @property
    def num_tokens(self) -> int:
        return sum(sequence.num_tokens for sequence in self.sequences)


@dataclass(frozen=True, slots=True)
class StepOutput:
    """`token_ids` by request id, for the sequences of the plan that sample; NO_TOKEN where none
    could be chosen."""

    token_ids: dict[str, int] = field(default_factory=dict)


class Runner(Protocol):
    """Runs the model over a plan. The real one is `engine.runner.ModelRunner`; tests have a fake
    whose next token is a hash of the KV it can see through the block table."""

    def run(self, plan: StepPlan) -> StepOutput:
        """Compute the KV of every scheduled token and sample where `samples` is true."""
        ...
