"""Vectors of sentences as bytes: a quarter of the size, the same order.

Each vector is scaled so that its largest value is 127 and rounded; its length is lost, which does
not matter, since only directions are compared. For MiniLM's vectors a cosine is off by less than
0.005 (a test holds it to that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.domain.search import SentenceVectors

if TYPE_CHECKING:
    from collections.abc import Sequence


def pack(spans: Sequence[tuple[int, int]], vectors: Sequence[Sequence[float]]) -> SentenceVectors:
    """One row a vector. Raises ValueError unless there is one vector a span."""
    if len(spans) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(spans)} sentences")
    if not vectors:
        return SentenceVectors()
    matrix = np.asarray(vectors, dtype=np.float32)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    rows = np.rint(matrix / np.where(largest > 0, largest, 1) * 127).astype(np.int8)
    return SentenceVectors(tuple(spans), rows.tobytes())


def cosines(packed: SentenceVectors, question: Sequence[float]) -> list[float]:
    """The cosine of each sentence with a question's vector (any length), in the order of `spans`.

    Raises ValueError when the rows are of another dimension.
    """
    if not packed.spans:
        return []
    if len(packed.rows) != len(packed.spans) * len(question):
        raise ValueError("sentence vectors of another dimension")
    rows = np.frombuffer(packed.rows, dtype=np.int8).reshape(len(packed.spans), -1)
    matrix = rows.astype(np.float32)
    vector = np.asarray(question, dtype=np.float32)
    lengths = np.linalg.norm(matrix, axis=1) * max(float(np.linalg.norm(vector)), 1e-12)
    products = matrix @ vector
    return [float(value) for value in products / np.where(lengths > 0, lengths, 1)]
