"""How many rows a step is padded to, so that a row's bits do not depend on the rows beside it.

A matrix kernel picks its blocking by the number of rows, and another blocking adds in another
order. Measured on an AMX Xeon: float32 holds from 16 rows on; bfloat16 from 48 on for most
shapes, but with 4,864 inputs only for some counts up to 255. So every count that will ever be used
is tried at load, with the shapes of the model, and only those that agree are used.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.layers.linear import Linear

_log = logging.getLogger(__name__)

# A projection that agrees only from more rows on is cut into tiles of this many instead: one decode
# must not cost what a hundred do.
_TILE_ROWS = 64
_MORE_ROWS = (16, 48, 64)


@dataclass(frozen=True, slots=True)
class RowPadding:
    """sizes: the row counts in use, ascending; empty: any. `is_exact`: they were found to agree."""

    sizes: tuple[int, ...] = ()
    is_exact: bool = False

    def padded(self, num_rows: int) -> int:
        """The number of rows to compute where `num_rows` are wanted."""
        if not self.sizes:
            return num_rows
        at = bisect_left(self.sizes, num_rows)
        assert at < len(self.sizes), f"{num_rows} rows exceed the step's {self.sizes[-1]}"
        return self.sizes[at]


@dataclass(frozen=True, slots=True)
class RowFunction:
    """Something that maps each row by itself: [num_rows, width] -> [num_rows, ...]."""

    apply: Callable[[torch.Tensor], torch.Tensor]
    width: int


def candidate_sizes(max_rows: int) -> tuple[int, ...]:
    """Row counts worth having, up to the first that is at least `max_rows`: powers of two to 16,
    then steps of 16, of 64 from 256 on and of 256 from 1,024 on."""
    sizes = [1, 2, 4, 8, 16]
    while sizes[-1] < max_rows:
        last = sizes[-1]
        sizes.append(last + (16 if last < 256 else 64 if last < 1024 else 256))
    while len(sizes) > 1 and sizes[-2] >= max_rows:
        sizes.pop()
    return tuple(sizes)


def find_row_padding(
    linears: Sequence[Linear], others: Sequence[RowFunction], max_rows: int
) -> RowPadding:
    """The row counts on which everything agrees bit for bit, wherever in the step a row stands.

    linears: all projections that see these rows; where one needs it, its `tile` is set.
    others: norms, activations and the like.
    max_rows: of a step. Where a row's place matters at so few (with AVX2 it does at 8 and 32, not
        at 16), they are padded to more.
    """
    padding = _search(linears, others, max_rows)
    for more_rows in _MORE_ROWS:
        if not padding.is_exact and more_rows > max_rows:
            padding = _search(linears, others, more_rows)
    if not padding.is_exact:
        _log.warning("a row depends on its place in the step: outputs may depend on the batch")
    return padding


def _search(linears: Sequence[Linear], others: Sequence[RowFunction], max_rows: int) -> RowPadding:
    candidates = candidate_sizes(max_rows)
    agreed = set(candidates)
    for alike in _by_shape(linears):
        probe, rows = _cancelling(alike[0], candidates[-1])
        agreeing = _agreeing(probe, rows, candidates)
        if _is_costly(agreeing, candidates):
            probe.tile = _TILE_ROWS
            agreeing = _agreeing(probe, rows, candidates)
        for linear in alike:
            linear.tile = probe.tile
        agreed &= agreeing
    generator = torch.Generator().manual_seed(1)
    for function in others:
        shape = (candidates[-1], function.width)
        drawn = torch.randn(shape, generator=generator)
        rows = drawn.to(linears[0].device, linears[0].weight.dtype)
        agreed &= _agreeing(function.apply, rows, candidates)
    return RowPadding(tuple(sorted(agreed | {candidates[-1]})), is_exact=bool(agreed))


def _by_shape(linears: Iterable[Linear]) -> Iterable[list[Linear]]:
    found: dict[tuple[object, ...], list[Linear]] = {}
    for linear in linears:
        key = (type(linear), *linear.weight.shape, linear.bias is None)
        found.setdefault(key, []).append(linear)
    return found.values()


def _is_costly(agreeing: set[int], candidates: Sequence[int]) -> bool:
    smallest = min(agreeing, default=candidates[-1] + 1)
    return smallest > _TILE_ROWS and candidates[-1] > _TILE_ROWS


def _agreeing(
    function: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, sizes: Sequence[int]
) -> set[int]:
    """The sizes at which the first and the last rows come out as in the whole of `rows`; none when
    the whole depends on the order of its rows."""
    whole = function(rows)
    if not torch.equal(function(rows.flip(0)), whole.flip(0)):
        return set()
    return {
        size
        for size in sizes
        if torch.equal(function(rows[:size].clone()), whole[:size])
        and torch.equal(function(rows[-size:].clone()), whole[-size:])
    }


def _cancelling(linear: Linear, num_rows: int) -> tuple[Linear, torch.Tensor]:
    """A projection of the same shape and rows for it whose products nearly cancel: the sums are
    small beside their terms, so that another order of adding shows even after rounding to bfloat16.
    (With the model's own weights one changed bit in 30,000 is seen.)"""
    num_out, num_in = linear.weight.shape
    half = num_in // 2
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    def like_weights(drawn: torch.Tensor) -> torch.Tensor:
        return drawn.to(linear.device, linear.weight.dtype)

    few = draw(min(num_out, 512), num_in)  # repeated: drawing a vocabulary's worth takes a while
    few[:, half : 2 * half] = -few[:, :half]
    weight = like_weights(few).repeat(-(-num_out // len(few)), 1)[:num_out].contiguous()
    rows = draw(num_rows, num_in)
    rows[:, half : 2 * half] = rows[:, :half] * (1.0 + 0.01 * draw(num_rows, half))
    bias = None if linear.bias is None else like_weights(draw(num_out))
    return linear.alike(weight, bias), like_weights(rows)
