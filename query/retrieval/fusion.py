"""Fusing the dense and the lexical leg into one ranking.

Two methods, both over what the legs returned and nothing else:

- DBSF (default). Per leg, a score is mapped by `(score - low) / (high - low)` with `low` and `high`
  the mean minus and plus three sample standard deviations of that leg's scores; the mapped scores
  of a point are added. One score alone, or all equal ones, map to 0.5. As Qdrant defines it:
  `lib/segment/src/common/score_fusion.rs` and `qdrant_client.hybrid.fusion`
  (`distribution_based_score_fusion`). Not clamped: an outlier may map above 1.
- RRF: the sum over legs of `weight / (k + rank)`, ranks from 1. Cormack, Clarke and Buettcher,
  "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods" (SIGIR 2009),
  with their k = 60. Qdrant's own default is another one, `1 / (k + rank - 1)` with k = 2, so their
  k = 61 is this k = 60.

The order is by (fused score, dense score, point id), so that the same legs always give the same
ranking, whatever order they arrive in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.domain.search import Candidate, LegResults, Passage, RetrievalScores

FusionMethod = Literal["dbsf", "rrf"]
RRF_K = 60


@dataclass(frozen=True, slots=True)
class LegWeights:
    """Weights other than equal ones are only worth it when tuned on the user's own data."""

    dense: float = 1.0
    lexical: float = 1.0


EQUAL_WEIGHTS = LegWeights()


def dbsf(leg_scores: Sequence[float]) -> list[float]:
    """One leg's scores mapped by mean plus and minus three sample standard deviations.

    Same length and order as given; no scores give no scores.
    """
    if len(leg_scores) < 2:
        return [0.5] * len(leg_scores)
    mean = math.fsum(leg_scores) / len(leg_scores)
    variance = math.fsum((value - mean) ** 2 for value in leg_scores) / (len(leg_scores) - 1)
    deviation = math.sqrt(variance)
    if deviation == 0.0:
        return [0.5] * len(leg_scores)
    low = mean - 3.0 * deviation
    return [(value - low) / (6.0 * deviation) for value in leg_scores]


def reciprocal_ranks(num_results: int, k: int = RRF_K) -> list[float]:
    """`1 / (k + rank)` for ranks 1 to `num_results`."""
    return [1.0 / (k + rank) for rank in range(1, num_results + 1)]


def fuse(
    legs: LegResults, method: FusionMethod = "dbsf", *, weights: LegWeights = EQUAL_WEIGHTS
) -> list[Passage]:
    """Every candidate of either leg, best first, with its scores and ranks in both legs.

    Ranks count from 1 in the order (leg score, point id), whatever order the leg arrives in. A leg
    without candidates adds nothing.
    """
    dense, lexical = _ranked(legs.dense), _ranked(legs.lexical)
    fused: dict[str, float] = {}
    for leg, weight in ((dense, weights.dense), (lexical, weights.lexical)):
        if method == "dbsf":
            added = dbsf([candidate.leg_score for candidate in leg])
        else:
            added = reciprocal_ranks(len(leg))
        for candidate, value in zip(leg, added, strict=True):
            fused[candidate.point_id] = fused.get(candidate.point_id, 0.0) + weight * value
    dense_ranks = {c.point_id: (rank, c.leg_score) for rank, c in enumerate(dense, 1)}
    lexical_ranks = {c.point_id: (rank, c.leg_score) for rank, c in enumerate(lexical, 1)}
    candidates = {c.point_id: c for c in (*lexical, *dense)}
    passages = [
        _passage(candidate, fused[point], dense_ranks.get(point), lexical_ranks.get(point))
        for point, candidate in candidates.items()
    ]
    return sorted(passages, key=_order)


def _ranked(leg: Sequence[Candidate]) -> list[Candidate]:
    return sorted(leg, key=lambda candidate: (-candidate.leg_score, candidate.point_id))


def _passage(
    candidate: Candidate,
    fused: float,
    dense: tuple[int, float] | None,
    lexical: tuple[int, float] | None,
) -> Passage:
    dense_rank, dense_score = dense or (None, None)
    lexical_rank, lexical_score = lexical or (None, None)
    return Passage(
        point_id=candidate.point_id,
        document_id=candidate.document_id,
        generation_id=candidate.generation_id,
        collection=candidate.collection,
        title=candidate.title,
        chunk=candidate.chunk,
        sentences=candidate.sentences,
        scores=RetrievalScores(
            dense=dense_score,
            dense_rank=dense_rank,
            lexical=lexical_score,
            lexical_rank=lexical_rank,
            fused=fused,
        ),
    )


def _order(passage: Passage) -> tuple[float, float, str]:
    dense = passage.scores.dense
    return (-passage.scores.fused, -dense if dense is not None else math.inf, passage.point_id)
