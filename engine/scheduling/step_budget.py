"""StepBudget: the plan of one step as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.step import ScheduledSequence

if TYPE_CHECKING:
    from engine.request import Request


class StepBudget:
    """`num_tokens`: what may be computed in the step, decodes and prefill chunks together."""

    def __init__(self, num_tokens: int) -> None:
        self.num_left = num_tokens
        self.sequences: list[ScheduledSequence] = []

    def give(self, request: Request) -> None:
        """As much of the request's gap between computed and known tokens as is left of the budget,
        in one piece; nothing when nothing is left."""
        num_tokens = min(request.num_uncomputed_tokens, self.num_left)
        if num_tokens:
            self.num_left -= num_tokens
            self.sequences.append(
                ScheduledSequence(request, request.num_computed_tokens, num_tokens)
            )
