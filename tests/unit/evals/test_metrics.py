"""Measures against values worked out by hand and against their definitions."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.logistic import fit
from evals.metrics import auroc, interval, ndcg, recall


def test_ndcg_discounts_by_rank() -> None:
    relevant = {"a": 1.0, "b": 1.0}
    assert ndcg(["a", "b"], relevant) == pytest.approx(1.0)
    assert ndcg(["x", "a"], relevant) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert ndcg(["x", "y"], relevant) == 0.0
    assert ndcg(["a"], {}) == 0.0


def test_ndcg_uses_gains_and_depth_and_counts_a_document_once() -> None:
    relevant = {"a": 2.0, "b": 1.0}
    ideal = 2 + 1 / math.log2(3)
    assert ndcg(["b", "a"], relevant) == pytest.approx((1 + 2 / math.log2(3)) / ideal)
    assert ndcg(["b", "b", "b", "a"], relevant) == ndcg(["b", "a"], relevant)
    assert ndcg([*"qrstuvwxyz", "a"], {"a": 1.0}, depth=10) == 0.0


def test_recall() -> None:
    assert recall(["x", "a", "a", "b"], {"a": 1, "b": 1, "c": 1}, 3) == pytest.approx(2 / 3)
    assert recall(["a"], {"a": 0.0}, 1) == 0.0


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_auroc_is_the_chance_that_a_positive_is_above(
    positives: list[int], negatives: list[int]
) -> None:
    pairs = list(product(positives, negatives))
    above = sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs)
    assert auroc(positives, negatives) == pytest.approx(above / len(pairs))


def test_auroc_without_one_label_is_no_number() -> None:
    assert math.isnan(auroc([], [1.0]))


def test_the_interval_holds_the_mean_and_is_repeatable() -> None:
    values = [0.0, 1.0] * 50
    low, high = interval(values)
    assert 0.38 < low < 0.5 < high < 0.62
    assert interval(values) == (low, high)


def test_logistic_regression_finds_the_sign_and_the_balance() -> None:
    features = [[value / 10, 0.5] for value in range(-20, 21)]
    labels = [row[0] > 0.3 for row in features]
    model = fit(features, labels, [1.0] * len(labels), ridge=0.1)
    assert model.coefficients[0] > 1.0
    assert abs(model.coefficients[1]) < 1e-6
    assert model.logit([2.0, 0.5]) > 0 > model.logit([-2.0, 0.5])
    assert abs(model.logit([0.35, 0.5])) < 1.0


def test_logistic_regression_needs_both_labels() -> None:
    with pytest.raises(ValueError, match="both labels"):
        fit([[1.0], [2.0]], [True, True], [1.0, 1.0], ridge=1.0)
