"""The reference against a dozen lines of arithmetic, and against its own contract."""

import math

import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.reference import ReferenceAttention
from tests.unit.engine.attention.conformance import AttentionConformance


class TestReference(AttentionConformance):
    """Against itself this proves the paging: other blocks, stale slots, chunks."""

    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        return ReferenceAttention(layout, num_query_heads, scale)


def test_weighs_values_by_softmax_of_scaled_products() -> None:
    """Two tokens, two query heads on one KV head, computed by hand."""
    layout = KVLayout(1, 2, 2, 1, 2, torch.float32, torch.device("cpu"))
    backend = ReferenceAttention(layout, 2, 0.5)
    backend.prepare(AttentionBatch([0, 2], [2], [[1]], torch.tensor([2, 3])))
    keys = torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]])
    values = torch.tensor([[[1.0, 10.0]], [[3.0, 20.0]]])
    backend.write(0, keys, values)
    queries = torch.tensor([[[5.0, 5.0], [5.0, 5.0]], [[2.0, 0.0], [0.0, 1.0]]])
    result = backend.attend(0, queries)
    assert result[0].tolist() == [[1.0, 10.0], [1.0, 10.0]]  # sees itself only
    first = 1 / (1 + math.exp(-1.0))  # products 2 * 0.5 and 0
    torch.testing.assert_close(
        result[1, 0], torch.tensor([first + 3 * (1 - first), 10 * first + 20 * (1 - first)])
    )
    second = 1 / (1 + math.exp(1.0))  # products 0 and 2 * 0.5
    torch.testing.assert_close(
        result[1, 1], torch.tensor([second + 3 * (1 - second), 10 * second + 20 * (1 - second)])
    )
