"""What the kernels are compiled for: the shape of the attention and the fixed tile sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import KernelUnavailable

if TYPE_CHECKING:
    from engine.attention.base import KVLayout

DECODE_ROWS = 16
"""Query rows of a decode program: the least that the matrix units of a GPU multiply at once."""

MIN_TILE = 16
MAX_HEAD_DIM = 256

# Multiplications and additions are not contracted: which pairs the compiler would contract differs
# from kernel to kernel, and with it the last bit.
COMPILE_OPTIONS = {"enable_fp_fusion": False}


def next_power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Fixed for the life of a backend: if a size depended on the batch, so would the rounding.

    kv: KV tokens that are multiplied at once.
    split: KV tokens after which a partial softmax is closed; a multiple of `kv`. Decode computes
        the splits of a sequence in parallel.
    prefill_rows: query rows of a prefill program.
    """

    kv: int = 64
    split: int = 512
    prefill_rows: int = 64

    @classmethod
    def fitting(cls, layout: KVLayout) -> TileSizes:
        """The largest that compute capabilities 8.0 and 9.0 hold in registers, by what ptxas
        reports; float32, which the matrix units do not multiply exactly, takes smaller ones."""
        if layout.dtype.itemsize > 2:
            return cls(kv=16, prefill_rows=32)
        return cls(kv=64 if layout.head_dim <= 128 else 32)

    def __post_init__(self) -> None:
        for name in ("kv", "prefill_rows"):
            size = getattr(self, name)
            if size < MIN_TILE or size != next_power_of_two(size):
                raise ValueError(f"{name} must be a power of two of at least {MIN_TILE}: {size}")
        if self.split < 1 or self.split % self.kv:
            raise ValueError(f"split must be a multiple of kv: {self.split}, {self.kv}")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Constants of every launch.

    group: query heads per KV head. The rows of a sequence are its queries times the group, row
        `t * group + g` being query t of the g-th head that reads the KV head: grouped-query
        attention needs no repeated keys, and one tile multiplies all heads of a group.
    head_tile: head_dim, rounded up to a power of two of at least 16; the rest is masked.
    dot_f32: multiply in float32 what is stored in bfloat16. Triton 3.9's interpreter loads and
        casts bfloat16 rightly, but its `tl.dot` on it returns garbage.
    scale_log2: the softmax scale times log2(e), since the kernels use exp2.
    """

    num_kv_heads: int
    group: int
    head_dim: int
    head_tile: int
    block_size: int
    tiles: TileSizes
    dot_f32: bool
    scale_log2: float

    @classmethod
    def of(
        cls,
        layout: KVLayout,
        num_query_heads: int,
        scale: float,
        tiles: TileSizes,
        *,
        dot_f32: bool,
    ) -> Geometry:
        """Raises KernelUnavailable for a shape the kernels are not written for."""
        if num_query_heads % layout.num_kv_heads:
            raise KernelUnavailable(
                f"{num_query_heads} query heads do not share {layout.num_kv_heads} KV heads evenly"
            )
        if not 1 <= layout.head_dim <= MAX_HEAD_DIM:
            raise KernelUnavailable(
                f"the kernels take head dimensions up to {MAX_HEAD_DIM}, not {layout.head_dim}"
            )
        return cls(
            num_kv_heads=layout.num_kv_heads,
            group=num_query_heads // layout.num_kv_heads,
            head_dim=layout.head_dim,
            head_tile=max(MIN_TILE, next_power_of_two(layout.head_dim)),
            block_size=layout.block_size,
            tiles=tiles,
            dot_f32=dot_f32,
            scale_log2=scale * math.log2(math.e),
        )

    def shape_constants(self) -> dict[str, int | bool]:
        """The constexpr arguments that both attention kernels take."""
        return {
            "NUM_KV_HEADS": self.num_kv_heads,
            "GROUP": self.group,
            "HEAD_DIM": self.head_dim,
            "HEAD_TILE": self.head_tile,
            "BLOCK_SIZE": self.block_size,
            "KV_TILE": self.tiles.kv,
            "SPLIT": self.tiles.split,
            "DOT_F32": self.dot_f32,
        }
