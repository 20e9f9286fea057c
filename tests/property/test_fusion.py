"""Fusion over arbitrary legs: order of arrival, monotony, and the reference implementations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.pages import Chunk
from core.domain.search import Candidate, LegResults
from query.retrieval.fusion import FusionMethod, dbsf, fuse

METHODS: tuple[FusionMethod, ...] = ("dbsf", "rrf")
CHUNK = Chunk(0, "text", (), "text", (), "en", 1)
scores = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))
legs = st.dictionaries(st.integers(0, 30).map(lambda number: f"p{number:02}"), scores, max_size=20)


def results(dense: dict[str, float], lexical: dict[str, float]) -> LegResults:
    return LegResults(_leg(dense), _leg(lexical))


def _leg(found: dict[str, float]) -> tuple[Candidate, ...]:
    return tuple(Candidate(p, "doc", "gen", "c", "t", CHUNK, value) for p, value in found.items())


@given(legs)
def test_dbsf_keeps_the_order_and_the_middle(leg: dict[str, float]) -> None:
    given_scores = list(leg.values())
    mapped = dbsf(given_scores)
    assert len(mapped) == len(given_scores)
    for i, low in enumerate(given_scores):
        for j, high in enumerate(given_scores):
            if low < high:
                assert mapped[i] <= mapped[j]
    if mapped:
        assert math.fsum(mapped) / len(mapped) == pytest.approx(0.5)


@given(legs, legs, st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(
    dense: dict[str, float], lexical: dict[str, float], method: FusionMethod, shuffler: object
) -> None:
    expected = fuse(results(dense, lexical), method)
    for leg in (dense, lexical):
        names = list(leg)
        shuffler.shuffle(names)  # type: ignore[attr-defined]
        reordered = {name: leg[name] for name in names}
        leg.clear()
        leg.update(reordered)
    assert fuse(results(dense, lexical), method) == expected


@given(legs, legs, st.sampled_from(METHODS))
def test_every_candidate_once_with_its_scores_and_ranks(
    dense: dict[str, float], lexical: dict[str, float], method: FusionMethod
) -> None:
    passages = fuse(results(dense, lexical), method)
    assert sorted(p.point_id for p in passages) == sorted(dense.keys() | lexical.keys())
    fused = [p.scores.fused for p in passages]
    assert fused == sorted(fused, reverse=True)
    for passage in passages:
        assert passage.scores.dense == dense.get(passage.point_id)
        assert passage.scores.lexical == lexical.get(passage.point_id)
        assert (passage.scores.dense_rank is None) == (passage.point_id not in dense)
    assert sorted(p.scores.lexical_rank for p in passages if p.scores.lexical_rank) == list(
        range(1, len(lexical) + 1)
    )


@given(legs, legs, st.sampled_from(METHODS))
def test_better_in_both_legs_is_never_worse_fused(
    dense: dict[str, float], lexical: dict[str, float], method: FusionMethod
) -> None:
    fused = {p.point_id: p.scores.fused for p in fuse(results(dense, lexical), method)}
    both = dense.keys() & lexical.keys()
    for low in both:
        for high in both:
            if dense[low] < dense[high] and lexical[low] < lexical[high]:
                assert fused[low] <= fused[high] + 1e-9


@given(legs)
def test_one_leg_alone_keeps_its_order(leg: dict[str, float]) -> None:
    expected = sorted(leg, key=lambda point: (-leg[point], point))
    for method in METHODS:
        for legs_given in (results(leg, {}), results({}, leg)):
            found = [p.point_id for p in fuse(legs_given, method)]
            assert found == expected
