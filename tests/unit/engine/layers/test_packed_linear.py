"""Packed projections give what plain ones give, and are not used where they cannot."""

import pytest
import torch

from engine.layers.linear import Linear
from engine.layers.packed_linear import PackedLinear, pack_linear


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("num_rows", [1, 3, 48, 200])
def test_gives_what_the_plain_projection_gives(num_rows: int, has_bias: bool) -> None:
    plain = Linear(drawn(96, 64), drawn(96, seed=1) if has_bias else None)
    packed = pack_linear(plain)
    rows = drawn(num_rows, 64, seed=2)
    torch.testing.assert_close(packed(rows), plain(rows), rtol=0.01, atol=0.1)


def test_keeps_one_copy_and_says_its_shape() -> None:
    packed = pack_linear(Linear(drawn(96, 64)))
    if isinstance(packed, PackedLinear):  # elsewhere the plain one is kept, which is fine
        assert packed.weight.is_meta
    assert packed.weight.shape == (96, 64)
    assert packed.device == torch.device("cpu")


def test_float32_stays_as_it_is() -> None:
    plain = Linear(drawn(96, 64).float())
    assert pack_linear(plain) is plain


def test_wrong_products_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: PackedLinear, rows: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(rows), self.weight.shape[0], dtype=rows.dtype)

    monkeypatch.setattr(PackedLinear, "multiply", wrong)
    plain = Linear(drawn(96, 64))
    assert pack_linear(plain) is plain


def test_stays_plain_where_torch_cannot_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise AttributeError("no such operator")

    monkeypatch.setattr(PackedLinear, "__init__", missing)
    plain = Linear(drawn(96, 64))
    assert pack_linear(plain) is plain
