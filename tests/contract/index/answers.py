"""Comparing answers of two implementations: numbers to 1e-5, ties in any order."""

import math
from typing import Any
from uuid import UUID

from pydantic import BaseModel

TOLERANCE = 1e-5
# Bookkeeping that implementations are free to differ in.
_IGNORED = {"version", "operation_id", "order_value", "shard_key"}


def plain(value: Any) -> Any:
    """Models, tuples and ids as JSON would have them, without absent values and bookkeeping."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, dict):
        return {
            key: plain(item)
            for key, item in value.items()
            if item is not None and key not in _IGNORED
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, UUID) else value


def difference(left: Any, right: Any, place: str = "answer") -> str | None:
    """Where and how two plain values differ, or None."""
    if isinstance(left, float) or isinstance(right, float):
        same = isinstance(right, int | float) and isinstance(left, int | float)
        close = same and math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return None if close else f"{place}: {left!r} != {right!r}"
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return f"{place}: keys {sorted(left)} != {sorted(right)}"
        pairs = [(left[key], right[key], f"{place}.{key}") for key in left]
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return f"{place}: {len(left)} items != {len(right)}"
        pairs = [(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True))]
    else:
        return None if left == right else f"{place}: {left!r} != {right!r}"
    return next((found for pair in pairs if (found := difference(*pair))), None)


def _near(number: float, others: list[float]) -> bool:
    return any(math.isclose(number, other, rel_tol=10 * TOLERANCE) for other in others)


def ranking_difference(left: list[Any], right: list[Any], *, offset: int = 0) -> str | None:
    """Like `difference` for two lists of scored points, where points of equal score may swap.

    The score at a cut (the limit, and the offset if there is one) may be shared by points on the
    other side of it, so the points with that score need not be the same ones.
    """
    scores = [[point.score for point in points] for points in (left, right)]
    if found := difference(scores[0], scores[1], "scores"):
        return found
    if not left:
        return None
    cuts = [scores[0][-1], *([scores[0][0]] if offset else [])]
    rest = [
        {str(point.id) for point in points if not _near(point.score, cuts)}
        for points in (left, right)
    ]
    return None if rest[0] == rest[1] else f"ids {rest[0] ^ rest[1]} are in one answer only"
