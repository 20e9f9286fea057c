"""Linear projections, several of one input fused into one matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from collections.abc import Sequence


class Linear:
    """`rows @ weight.T + bias`. weight: [num_out, num_in].

    tile: when set, rows are multiplied this many at a time, the last ones filled up with zeros, so
    that the kernel never sees another shape (`engine.layers.row_padding` says when that is needed).
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, tile: int | None = None
    ) -> None:
        self.weight = weight
        self.bias = bias
        self.tile = tile
        self.device = weight.device

    @classmethod
    def fused(
        cls, weights: Sequence[torch.Tensor], biases: Sequence[torch.Tensor] | None = None
    ) -> Linear:
        """One projection whose outputs are those of `weights`, side by side. Copies."""
        return Linear(torch.cat(list(weights)), torch.cat(list(biases)) if biases else None)

    def to(self, device: torch.device) -> Linear:
        bias = None if self.bias is None else self.bias.to(device)
        return Linear(self.weight.to(device), bias, tile=self.tile)

    def alike(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        """Another projection that is computed by the same kernel."""
        return Linear(weight, bias)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[num_rows, num_in] -> [num_rows, num_out]."""
        if self.tile is None:
            return self.multiply(rows)
        num_rows = rows.shape[0]
        filled = F.pad(rows, (0, 0, 0, -num_rows % self.tile))
        tiles = [self.multiply(tile) for tile in filled.split(self.tile)]
        return torch.cat(tiles)[:num_rows]

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        """As `__call__`, all rows at once."""
        return F.linear(rows, self.weight, self.bias)
