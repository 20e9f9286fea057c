"""The CPU backend: the contract, and exactness on top of it."""

import pytest
import torch

from engine.attention.base import AttentionBackend, KVLayout
from engine.attention.cpu import CpuAttention
from engine.attention.cpu_padding import AttentionPadding, find_padding
from engine.errors import KernelUnavailable
from tests.unit.engine.attention.conformance import AttentionConformance


def small_layout(dtype: torch.dtype, *, head_dim: int = 64, num_kv_heads: int = 3) -> KVLayout:
    return KVLayout(1, 80, 16, num_kv_heads, head_dim, dtype, torch.device("cpu"))


class TestDeterministicCpu(AttentionConformance):
    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        return CpuAttention(layout, num_query_heads, scale, padding=AttentionPadding(8, 256))


class TestTiledCpu(AttentionConformance):
    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        padding = AttentionPadding(4, 256, is_tiled=True)
        return CpuAttention(layout, num_query_heads, scale, padding=padding)


class TestUnpaddedCpu(AttentionConformance):
    def create(self, layout: KVLayout, num_query_heads: int, scale: float) -> AttentionBackend:
        return CpuAttention(layout, num_query_heads, scale, deterministic=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("head_dim", "group"), [(64, 3), (16, 1), (64, 8), (128, 4)])
def test_this_machine_has_an_exact_padding(dtype: torch.dtype, head_dim: int, group: int) -> None:
    layout = small_layout(dtype, head_dim=head_dim, num_kv_heads=2)
    padding = find_padding(CpuAttention, layout, 2 * group, head_dim**-0.5)
    assert padding.is_exact


def test_a_backend_that_looks_at_the_number_of_rows_is_found_out() -> None:
    """The self-test must be able to fail: this backend's last bits follow the batch."""

    class Leaky(CpuAttention):
        def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
            return super().attend(layer, query) * (1.0 + len(query) * 2.0**-20)

    layout = small_layout(torch.float32)
    assert not find_padding(Leaky, layout, 9, 0.125).is_exact


def test_refuses_a_pool_elsewhere() -> None:
    layout = KVLayout(1, 4, 16, 1, 16, torch.float32, torch.device("meta"))
    with pytest.raises(KernelUnavailable, match="cpu cannot run on meta"):
        CpuAttention(layout, 1, 0.25)
