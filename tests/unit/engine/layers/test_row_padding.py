"""The search for row counts that agree: it must find them, and find out what does not."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.layers.linear import Linear
from engine.layers.row_padding import (
    RowFunction,
    RowPadding,
    candidate_sizes,
    find_row_padding,
)


def linear(num_out: int, num_in: int, dtype: torch.dtype = torch.float32) -> Linear:
    drawn = torch.randn((num_out, num_in), generator=torch.Generator().manual_seed(0))
    return Linear(drawn.to(dtype))


@given(st.integers(1, 3000))
def test_candidates_reach_just_far_enough(max_rows: int) -> None:
    sizes = candidate_sizes(max_rows)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[-1] >= max_rows
    assert sizes[-1] < 2 * max_rows
    assert len(sizes) == 1 or sizes[-2] < max_rows


def test_pads_to_the_next_size() -> None:
    padding = RowPadding((16, 32, 64), is_exact=True)
    assert [padding.padded(rows) for rows in (1, 16, 17, 33, 64)] == [16, 16, 32, 64, 64]
    assert RowPadding().padded(7) == 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_this_machine_has_sizes_that_agree(dtype: torch.dtype) -> None:
    """And at those, the products of the real weights agree, too."""
    shapes = [(96, 64), (576, 576), (192, 256)]
    projections = [linear(*shape, dtype) for shape in shapes]
    padding = find_row_padding(projections, [], 128)
    assert padding.is_exact
    for projection in projections:
        rows = linear(128, projection.weight.shape[1], dtype).weight
        whole = projection(rows)
        for size in padding.sizes:
            assert torch.equal(projection(rows[:size].clone()), whole[:size])
            assert torch.equal(projection(rows[-size:].clone()), whole[-size:])


def test_drops_the_sizes_at_which_something_else_differs() -> None:
    def unsteady(rows: torch.Tensor) -> torch.Tensor:
        return rows * (1.0 if len(rows) >= 32 else 1.0 + 2.0**-20)

    padding = find_row_padding([linear(32, 64)], [RowFunction(unsteady, 64)], 64)
    assert padding.is_exact
    assert padding.sizes[0] >= 32


def test_finds_out_that_places_matter() -> None:
    def by_place(rows: torch.Tensor) -> torch.Tensor:
        return rows * (1.0 + 2.0**-20 * torch.arange(len(rows))[:, None])

    padding = find_row_padding([linear(32, 64)], [RowFunction(by_place, 64)], 64)
    assert not padding.is_exact
    assert padding.sizes == (64,)


def test_pads_to_more_where_places_matter_at_few_rows() -> None:
    def by_place(rows: torch.Tensor) -> torch.Tensor:
        if len(rows) >= 48:
            return rows
        return rows * (1.0 + 2.0**-20 * torch.arange(len(rows))[:, None])

    padding = find_row_padding([linear(32, 64)], [RowFunction(by_place, 64)], 8)
    assert padding == RowPadding((48,), is_exact=True)


class ShapeDependent(Linear):
    """A kernel that adds in another order for each number of rows."""

    def alike(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        return ShapeDependent(weight, bias)

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        return super().multiply(rows) * (1.0 + len(rows) * 2.0**-20)


def test_cuts_a_projection_into_tiles_that_agrees_only_at_large_sizes() -> None:
    projection = ShapeDependent(linear(32, 64).weight)
    padding = find_row_padding([projection], [], 256)
    assert projection.tile == 64
    assert padding.is_exact
    assert padding.sizes[0] <= 64
    rows = linear(256, 64).weight
    whole = projection(rows)
    for size in padding.sizes:
        assert torch.equal(projection(rows[:size].clone()), whole[:size])
