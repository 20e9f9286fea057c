"""Linear, norm and rotary embedding against plain arithmetic."""

import math

import pytest
import torch

from engine.layers.linear import Linear
from engine.layers.norm import RMSNorm
from engine.layers.rotary import RopeConfig, RotaryEmbedding, frequencies

CPU = torch.device("cpu")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("num_rows", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("has_bias", [True, False])
def test_tiles_change_nothing_but_bits(num_rows: int, has_bias: bool) -> None:
    bias = drawn(24, seed=1) if has_bias else None
    linear = Linear(drawn(24, 32), bias)
    tiled = Linear(linear.weight, bias, tile=8)
    rows = drawn(num_rows, 32, seed=2)
    assert tiled(rows).shape == (num_rows, 24)
    torch.testing.assert_close(tiled(rows), linear(rows))


def test_fused_outputs_stand_side_by_side() -> None:
    first, second = drawn(4, 6), drawn(2, 6, seed=1)
    rows = drawn(3, 6, seed=2)
    fused = Linear.fused([first, second], [torch.ones(4), torch.zeros(2)])
    expected = torch.cat([rows @ first.T + 1.0, rows @ second.T], dim=1)
    torch.testing.assert_close(fused(rows), expected)


def test_norm_scales_to_unit_mean_square() -> None:
    rows = 5.0 * drawn(3, 64)
    normed = RMSNorm(torch.ones(64), 1e-6)(rows)
    torch.testing.assert_close(normed.square().mean(-1), torch.ones(3))
    doubled = RMSNorm(torch.full((64,), 2.0), 1e-6)(rows)
    torch.testing.assert_close(doubled, 2.0 * normed)


def test_norm_computes_in_float32_and_rounds_once() -> None:
    rows = drawn(5, 512).bfloat16()
    normed = RMSNorm(torch.ones(512, dtype=torch.bfloat16), 1e-6)(rows)
    wide = RMSNorm(torch.ones(512), 1e-6)(rows.float())
    assert torch.equal(normed, wide.bfloat16())


def test_eps_keeps_zeros_finite() -> None:
    assert RMSNorm(torch.ones(8), 1e-6)(torch.zeros(2, 8)).eq(0.0).all()


def test_rotation_turns_pairs_by_position_and_frequency() -> None:
    rotary = RotaryEmbedding(RopeConfig(theta=100.0), 4, 32, CPU)
    heads = torch.tensor([[[1.0, 1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0, 0.0]]])
    turned = rotary.at(torch.tensor([0, 3]))(heads)
    torch.testing.assert_close(turned[0], heads[0])
    fast, slow = 3.0, 3.0 * 100.0**-0.5
    expected = [math.cos(fast), math.cos(slow), math.sin(fast), math.sin(slow)]
    torch.testing.assert_close(turned[1, 0], torch.tensor(expected))


def test_products_depend_on_the_distance_only() -> None:
    rotary = RotaryEmbedding(RopeConfig(), 64, 600, CPU)
    query, key = drawn(1, 1, 64), drawn(1, 1, 64, seed=1)

    def product(query_at: int, key_at: int) -> float:
        turned_query = rotary.at(torch.tensor([query_at]))(query)
        return float((turned_query * rotary.at(torch.tensor([key_at]))(key)).sum())

    assert product(17, 5) == pytest.approx(product(512, 500), abs=1e-4)
    assert product(17, 5) != pytest.approx(product(17, 6), abs=1e-2)


def test_late_positions_are_told_apart_in_bfloat16() -> None:
    rotary = RotaryEmbedding(RopeConfig(), 64, 4096, CPU)
    heads = drawn(1, 1, 64).bfloat16()
    one, next_one = (rotary.at(torch.tensor([at]))(heads) for at in (4000, 4001))
    assert one.dtype is torch.bfloat16
    assert not torch.equal(one, next_one)


def test_linear_scaling_slows_everything() -> None:
    plain = frequencies(RopeConfig(), 64)
    torch.testing.assert_close(frequencies(RopeConfig(kind="linear", factor=4.0), 64), plain / 4)


def test_llama3_scaling_slows_long_waves_only() -> None:
    plain = frequencies(RopeConfig(500_000.0), 128)
    scaled = frequencies(RopeConfig(500_000.0, "llama3", 8.0, 1.0, 4.0, 8192), 128)
    waves = 2.0 * math.pi / plain
    short, long = waves < 8192 / 4, waves > 8192
    between = ~short & ~long
    assert short.any()
    assert between.any()
    assert long.any()
    torch.testing.assert_close(scaled[short], plain[short])
    torch.testing.assert_close(scaled[long], plain[long] / 8.0)
    assert (scaled[between] < plain[between]).all()
    assert (scaled[between] > plain[between] / 8.0).all()
