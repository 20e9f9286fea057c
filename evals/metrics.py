"""Measures of rankings and of yes-or-no signals, in plain Python.

nDCG as in trec_eval (`ndcg_cut`): linear gains, discount log2(rank + 1), over the ideal ranking of
all judged documents; ties are already broken by the order that is given.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def ndcg(ranking: Sequence[str], relevant: Mapping[str, float], depth: int = 10) -> float:
    """0 to 1. A document named twice counts at its first place only. 0 when nothing is relevant."""
    distinct = list(dict.fromkeys(ranking))[:depth]
    gained = sum(
        relevant.get(document, 0.0) / math.log2(rank + 1)
        for rank, document in enumerate(distinct, 1)
    )
    ideal = sum(
        gain / math.log2(rank + 1)
        for rank, gain in enumerate(sorted(relevant.values(), reverse=True)[:depth], 1)
    )
    return gained / ideal if ideal > 0 else 0.0


def recall(ranking: Sequence[str], relevant: Mapping[str, float], depth: int) -> float:
    """Share of the relevant documents among the first `depth` distinct ones."""
    wanted = {document for document, gain in relevant.items() if gain > 0}
    found = wanted.intersection(list(dict.fromkeys(ranking))[:depth])
    return len(found) / len(wanted) if wanted else 0.0


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Chance that a positive is above a negative, ties counting half (Mann-Whitney U)."""
    if not positives or not negatives:
        return math.nan
    values = sorted(
        [(value, True) for value in positives] + [(value, False) for value in negatives]
    )
    rank_sum = 0.0
    first = 0
    while first < len(values):
        last = first
        while last < len(values) and values[last][0] == values[first][0]:
            last += 1
        rank_sum += (
            (first + 1 + last) / 2 * sum(is_positive for _, is_positive in values[first:last])
        )
        first = last
    above = rank_sum - len(positives) * (len(positives) + 1) / 2
    return above / (len(positives) * len(negatives))


def interval(values: Sequence[float], *, rounds: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap of the mean (of paired differences, for a comparison)."""
    generator = random.Random(seed)
    means = sorted(
        sum(generator.choices(values, k=len(values))) / len(values) for _ in range(rounds)
    )
    return means[int(0.025 * rounds)], means[int(0.975 * rounds)]
