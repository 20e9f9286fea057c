"""Top-k, top-p and min-p as thresholds on a row's weights.

Weights are `exp(logit - largest logit)`: the probabilities up to a factor, the best token at 1. A
filter finds the smallest weight that is kept and drops what is below, so equals are kept together
and no result depends on how a sort breaks ties.
"""

from __future__ import annotations

import torch

# The nucleus is nearly always inside the best few hundred tokens; sorting a whole vocabulary of
# 50,000 takes longer than the rest of sampling together.
_FIRST_LOOK = 256


def keep_top_k(weights: torch.Tensor, top_k: int) -> torch.Tensor:
    """[vocab] -> the same with all but the `top_k` largest at 0 (all are kept for 0 and -1)."""
    if not 0 < top_k < weights.shape[0]:
        return weights
    smallest = torch.topk(weights, top_k).values[-1]
    return weights.where(weights >= smallest, 0.0)


def keep_top_p(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """[vocab] -> the same with all but the nucleus at 0: the fewest largest weights that make up
    `top_p` of their sum (Holtzman et al., 2020)."""
    if top_p >= 1.0:
        return weights
    wanted = weights.sum(dtype=torch.float64) * top_p
    for count in (min(_FIRST_LOOK, weights.shape[0]), weights.shape[0]):
        largest = torch.topk(weights, count).values
        reached = largest.cumsum(0, dtype=torch.float64) >= wanted
        if reached[-1]:
            smallest = largest[int(reached.to(torch.int8).argmax())]
            return weights.where(weights >= smallest, 0.0)
    return weights  # the sum of all, rounded, is just below what is wanted


def keep_min_p(weights: torch.Tensor, min_p: float) -> torch.Tensor:
    """[vocab], the largest 1 -> the same with everything below `min_p` at 0."""
    return weights.where(weights >= min_p, 0.0) if min_p > 0.0 else weights
