"""Sampler: from the logits of a step to one token per request.

Each row is worked on by itself and random numbers come from (seed, position), so a request's tokens
do not depend on its batch mates, on preemption or on how its prompt was chunked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.sampling.filters import keep_min_p, keep_top_k, keep_top_p
from engine.sampling.masks import apply_mask, has_mask
from engine.sampling.penalties import apply_penalties, has_penalties
from engine.sampling.randomness import uniform
from engine.step import NO_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.request import Request
    from engine.sampling_params import SamplingParams


class Sampler:
    """`vocab_size`: ids from there on are padding of the output projection and never sampled."""

    def __init__(self, vocab_size: int, device: torch.device) -> None:
        self.vocab_size = vocab_size
        self.device = device

    def sample(self, logits: torch.Tensor, requests: Sequence[Request]) -> list[int]:
        """`logits`: [num_requests, >= vocab_size] float32, left as they are. A token id for each
        request, or NO_TOKEN."""
        logits = logits[:, : self.vocab_size]
        # [num_requests] each; argmax gives the first, so the lowest id, among equals
        token_ids = logits.argmax(dim=-1).tolist()
        is_sound = logits.amax(dim=-1).isfinite().tolist()
        for index, request in enumerate(requests):
            if not is_sound[index]:
                token_ids[index] = NO_TOKEN
            elif not _is_plain_argmax(request):
                token_ids[index] = _choose(logits[index], request)
        return [int(token_id) for token_id in token_ids]


def next_token_weights(logits: torch.Tensor, sampling: SamplingParams) -> torch.Tensor:
    """[vocab] float32 logits, the largest finite -> weights in proportion to the probability of
    each token: temperature, then top-k, then top-p of what top-k left, then min-p."""
    # The best is subtracted first, so that no temperature, however small, overflows.
    weights = ((logits - logits.amax()) / sampling.temperature).exp()
    weights = keep_top_k(weights, sampling.top_k)
    weights = keep_top_p(weights, sampling.top_p)
    return keep_min_p(weights, sampling.min_p)


def _is_plain_argmax(request: Request) -> bool:
    sampling = request.sampling
    return sampling.is_greedy and not has_penalties(sampling) and not has_mask(request)


def _choose(logits: torch.Tensor, request: Request) -> int:
    row = logits.clone()
    if has_penalties(request.sampling):
        apply_penalties(row, request)
    if has_mask(request):
        apply_mask(row, request)
    if not row.amax().isfinite():
        return NO_TOKEN
    if request.sampling.is_greedy:
        return int(row.argmax())
    weights = next_token_weights(row, request.sampling)
    return _draw(weights, uniform(request.seed, len(request.output_token_ids)))


def _draw(weights: torch.Tensor, point: float) -> int:
    """Inverse of the cumulative distribution: the first token whose cumulative weight is above
    `point` (in [0, 1)) of the sum. A token of weight 0 does not raise it, so it is never first."""
    cumulative = weights.cumsum(0, dtype=torch.float64)
    target = cumulative[-1] * point
    return int(torch.searchsorted(cumulative, target, right=True))
