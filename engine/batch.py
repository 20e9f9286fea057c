"""StepBatch: a step plan as the flat tensors that the model reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.attention.base import AttentionBatch

if TYPE_CHECKING:
    from engine.request import Request
    from engine.step import ScheduledSequence, StepPlan


@dataclass(frozen=True, slots=True)
class StepBatch:
    """
    token_ids, positions: [num_tokens] int64, sequence after sequence.
    sampled_rows: for each of `sampling`, the row of its last token.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    attention: AttentionBatch
    sampled_rows: list[int]
    sampling: list[Request]


def build_batch(plan: StepPlan, block_size: int, device: torch.device) -> StepBatch:
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    query_starts = [0]
    sampled_rows: list[int] = []
    for sequence in plan.sequences:
        token_ids += sequence.request.tokens(sequence.start, sequence.end)
        positions += range(sequence.start, sequence.end)
        slots += _slots(sequence, block_size)
        query_starts.append(len(token_ids))
        if sequence.samples:
            sampled_rows.append(len(token_ids) - 1)
    return StepBatch(
        token_ids=torch.tensor(token_ids, dtype=torch.int64, device=device),
        positions=torch.tensor(positions, dtype=torch.int64, device=device),
        attention=AttentionBatch(
            query_starts=query_starts,
            context_lens=[sequence.end for sequence in plan.sequences],
            block_tables=[sequence.request.block_table for sequence in plan.sequences],
            slots=torch.tensor(slots, dtype=torch.int64, device=device),
        ),
        sampled_rows=sampled_rows,
        sampling=[sequence.request for sequence in plan.sequences if sequence.samples],
    )


def _slots(sequence: ScheduledSequence, block_size: int) -> list[int]:
    table = sequence.request.block_table
    return [
        table[at // block_size] * block_size + at % block_size
        for at in range(sequence.start, sequence.end)
    ]
