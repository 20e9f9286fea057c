"""Weighted ridge logistic regression by Newton's method (iteratively reweighted least squares)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_STEPS = 50
_SMALLEST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class Logistic:
    """`logit(x) = intercept + coefficients . x`, in the units of the features."""

    coefficients: tuple[float, ...]
    intercept: float

    def logit(self, features: Sequence[float]) -> float:
        return self.intercept + sum(c * x for c, x in zip(self.coefficients, features, strict=True))


def fit(
    features: Sequence[Sequence[float]],
    labels: Sequence[bool],
    weights: Sequence[float],
    *,
    ridge: float,
) -> Logistic:
    """Minimise the weighted log loss plus `ridge / 2` times the squared coefficients of the
    standardised features; the intercept is not penalised.

    Raises ValueError for fewer than one example of each label.
    """
    if len(set(labels)) < 2:
        raise ValueError("both labels are needed")
    table = np.asarray(features, np.float64)
    mean, spread = table.mean(axis=0), table.std(axis=0) + _SMALLEST_SPREAD
    design = np.column_stack([(table - mean) / spread, np.ones(len(table))])
    target, weight = np.asarray(labels, np.float64), np.asarray(weights, np.float64)
    penalty = np.diag([ridge] * table.shape[1] + [0.0])
    found: npt.NDArray[np.float64] = np.zeros(design.shape[1])
    for _ in range(_MAX_STEPS):
        guess = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (weight * (guess - target)) + penalty @ found
        curvature = (design * (weight * guess * (1 - guess))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, gradient)
        found -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    coefficients = found[:-1] / spread
    intercept = float(found[-1] - coefficients @ mean)
    return Logistic(tuple(float(value) for value in coefficients), intercept)
