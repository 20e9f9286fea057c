"""Rotary position embedding (Su et al., 2021), in Hugging Face's half-split layout: dimension i
turns together with dimension i + head_dim / 2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embedding: frequency i of d/2 turns at `theta ** (-2i / d)` per position.

    kind: default; linear: all frequencies slowed by `factor`; llama3: long waves slowed by
        `factor`, those shorter than `original_context / high_frequency_factor` not at all, those
        between smoothly (Llama 3.1).
    """

    theta: float = 10_000.0
    kind: str = "default"
    factor: float = 1.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of a step's positions, each [num_rows, 1, head_dim / 2] float32."""

    cosine: torch.Tensor
    sine: torch.Tensor

    def __call__(self, heads: torch.Tensor) -> torch.Tensor:
        """Rotate [num_rows, num_heads, head_dim]; computed in float32, rounded once."""
        first, second = heads.float().chunk(2, dim=-1)
        rotated = torch.empty(heads.shape, dtype=torch.float32, device=heads.device)
        half = heads.shape[-1] // 2
        torch.mul(first, self.cosine, out=rotated[..., :half]).addcmul_(
            second, self.sine, value=-1.0
        )
        torch.mul(second, self.cosine, out=rotated[..., half:]).addcmul_(first, self.sine)
        return rotated.to(heads.dtype)


class RotaryEmbedding:
    """Tables for `num_positions` positions. float32: bfloat16 cannot tell 257 from 256."""

    def __init__(
        self, rope: RopeConfig, head_dim: int, num_positions: int, device: torch.device
    ) -> None:
        self.num_positions = num_positions
        angles = torch.outer(
            torch.arange(num_positions, dtype=torch.float32), frequencies(rope, head_dim)
        )
        self._cosine = angles.cos()[:, None].to(device)  # [num_positions, 1, head_dim / 2]
        self._sine = angles.sin()[:, None].to(device)

    def at(self, positions: torch.Tensor) -> Rotation:
        """The rotation of these positions, [num_rows] int64."""
        return Rotation(
            self._cosine.index_select(0, positions), self._sine.index_select(0, positions)
        )


def frequencies(rope: RopeConfig, head_dim: int) -> torch.Tensor:
    """Radians per position, [head_dim / 2] float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    plain = 1.0 / rope.theta**exponents
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "llama3":
        waves = 2.0 * math.pi / plain  # positions per turn
        low, high = rope.low_frequency_factor, rope.high_frequency_factor
        smooth = ((rope.original_context / waves - low) / (high - low)).clamp(0.0, 1.0)
        return (1.0 - smooth) * plain / rope.factor + smooth * plain
    return plain
