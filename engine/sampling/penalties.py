"""Presence, frequency and repetition penalties, in place on one row of logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from engine.request import Request
    from engine.sampling_params import SamplingParams


def has_penalties(sampling: SamplingParams) -> bool:
    return (
        sampling.repetition_penalty != 1.0
        or sampling.frequency_penalty != 0.0
        or sampling.presence_penalty != 0.0
    )


def apply_penalties(row: torch.Tensor, request: Request) -> None:
    """`row`: [vocab] float32, changed in place.

    Repetition (Keskar et al., CTRL, 2019): positive logits of tokens seen in prompt or output are
    divided by it, negative ones multiplied. Frequency and presence as OpenAI documents them: over
    output tokens, per occurrence and once.
    """
    sampling = request.sampling
    if sampling.repetition_penalty != 1.0:
        seen = _ids([*request.prompt_token_ids, *request.output_token_ids], row)
        logits = row[seen]
        penalty = sampling.repetition_penalty
        row[seen] = torch.where(logits > 0, logits / penalty, logits * penalty)
    if request.output_token_ids and (sampling.frequency_penalty or sampling.presence_penalty):
        said, counts = torch.unique(_ids(request.output_token_ids, row), return_counts=True)
        row[said] -= counts * sampling.frequency_penalty + sampling.presence_penalty


def _ids(token_ids: list[int], row: torch.Tensor) -> torch.Tensor:
    """[num_ids] int64; a prompt may hold ids beyond what can be sampled, which are left out."""
    ids = torch.tensor(token_ids, dtype=torch.int64, device=row.device)
    return ids[(ids >= 0) & (ids < row.shape[0])]
