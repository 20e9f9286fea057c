"""Root-mean-square normalisation (Zhang and Sennrich, 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class RMSNorm:
    """`x / sqrt(mean(x^2) + eps) * weight` over the last dimension, the mean in float32."""

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        self.weight = weight
        self.eps = eps

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[num_rows, hidden_size] -> the same shape and dtype."""
        wide = rows.float()
        scale = wide.square().mean(-1, keepdim=True).add_(self.eps).rsqrt_()
        return (wide * scale).to(rows.dtype) * self.weight
