"""DBSF and RRF against numbers worked out by hand."""

import pytest

from core.domain.pages import Chunk
from core.domain.search import Candidate, LegResults
from query.retrieval.fusion import LegWeights, dbsf, fuse, reciprocal_ranks

CHUNK = Chunk(0, "text", (), "text", (), "en", 1)


def candidate(point_id: str, leg_score: float) -> Candidate:
    return Candidate(point_id, "doc", "gen", "c", "t", CHUNK, leg_score)


LEGS = LegResults(
    dense=(candidate("a", 0.9), candidate("b", 0.6), candidate("c", 0.3)),
    lexical=(candidate("c", 12.0), candidate("d", 8.0)),
)


def test_dbsf_maps_by_three_sample_deviations() -> None:
    # mean .6, sample deviation .3: low -.3, high 1.5
    assert dbsf([0.9, 0.6, 0.3]) == pytest.approx([2 / 3, 0.5, 1 / 3])
    # mean 10, sample deviation sqrt(8): (12 - 10 + 3 s) / 6 s = .5 + 2 / (6 * 2.8284)
    assert dbsf([12.0, 8.0]) == pytest.approx([0.5 + 0.11785113, 0.5 - 0.11785113])


@pytest.mark.parametrize(("leg", "mapped"), [([], []), ([7.0], [0.5]), ([2.0, 2.0], [0.5, 0.5])])
def test_dbsf_without_a_spread_is_the_middle(leg: list[float], mapped: list[float]) -> None:
    assert dbsf(leg) == mapped


def test_dbsf_is_not_clamped() -> None:
    assert dbsf([100.0] + [0.0] * 50)[0] > 1.0


def test_fused_scores_of_both_legs_are_added() -> None:
    passages = fuse(LEGS, "dbsf")
    assert [(p.point_id, round(p.scores.fused, 4)) for p in passages] == [
        ("c", 0.9512),
        ("a", 0.6667),
        ("b", 0.5),
        ("d", 0.3821),
    ]
    best = passages[0].scores
    assert (best.dense, best.dense_rank, best.lexical, best.lexical_rank) == (0.3, 3, 12.0, 1)
    assert (passages[3].scores.dense, passages[3].scores.dense_rank) == (None, None)


def test_rrf_counts_ranks_from_one_with_k_of_sixty() -> None:
    assert reciprocal_ranks(2) == [1 / 61, 1 / 62]
    assert reciprocal_ranks(1, k=1) == [1 / 2]
    assert {p.point_id: p.scores.fused for p in fuse(LEGS, "rrf")} == pytest.approx(
        {"a": 1 / 61, "b": 1 / 62, "c": 1 / 63 + 1 / 61, "d": 1 / 62}
    )


def test_weights_lean_to_one_leg() -> None:
    dense_only = fuse(LEGS, "rrf", weights=LegWeights(dense=1.0, lexical=0.0))
    assert [p.point_id for p in dense_only] == ["a", "b", "c", "d"]


def test_ties_go_by_dense_score_then_id() -> None:
    legs = LegResults(
        dense=(candidate("z", 0.5), candidate("y", 0.5)),
        lexical=(candidate("x", 3.0), candidate("w", 3.0)),
    )
    # all four map to .5 under DBSF; a missing dense score is behind any dense score
    assert [p.point_id for p in fuse(legs, "dbsf")] == ["y", "z", "w", "x"]


def test_nothing_found_is_nothing() -> None:
    assert fuse(LegResults()) == []
