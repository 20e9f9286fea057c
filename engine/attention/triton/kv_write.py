"""Scatter of a step's keys and values to their slots."""

# ruff: noqa: PLR0913, PLR0917 - a kernel takes its pointers and constants one by one

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from engine.attention.triton.geometry import COMPILE_OPTIONS, next_power_of_two

if TYPE_CHECKING:
    import torch

    from engine.attention.triton.geometry import Geometry


@triton.jit
def write_kernel(
    key: tl.tensor,
    value: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    key_stride: tl.tensor,
    value_stride: tl.tensor,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEADS_TILE: tl.constexpr,
    HEAD_TILE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
) -> None:
    """Program (token): all its KV heads."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    heads = tl.arange(0, HEADS_TILE)[:, None]
    dims = tl.arange(0, HEAD_TILE)[None, :]
    is_place = (heads < NUM_KV_HEADS) & (dims < HEAD_DIM)
    read = heads * HEAD_DIM + dims
    row = (slot // BLOCK_SIZE * NUM_KV_HEADS + heads) * BLOCK_SIZE + slot % BLOCK_SIZE
    write = row * HEAD_DIM + dims
    tl.store(keys + write, tl.load(key + token * key_stride + read, mask=is_place), mask=is_place)
    tl.store(
        values + write,
        tl.load(value + token * value_stride + read, mask=is_place),
        mask=is_place,
    )


def write_kv(
    key: torch.Tensor,
    value: torch.Tensor,
    pool: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    geometry: Geometry,
) -> None:
    """Store key and value, [num_tokens, num_kv_heads, head_dim] of the pool's dtype, at `slots`,
    int64 and distinct.

    pool: keys and values of the layer, contiguous [num_blocks, num_kv_heads, block_size,
    head_dim]. Slices of a fused projection are read where they lie.
    """
    keys, values = pool
    key, value = (_with_dense_rows(rows) for rows in (key, value))
    write_kernel[(len(slots),)](
        key,
        value,
        keys,
        values,
        slots,
        key.stride(0),
        value.stride(0),
        NUM_KV_HEADS=geometry.num_kv_heads,
        HEAD_DIM=geometry.head_dim,
        HEADS_TILE=next_power_of_two(geometry.num_kv_heads),
        HEAD_TILE=geometry.head_tile,
        BLOCK_SIZE=geometry.block_size,
        num_warps=4,
        **COMPILE_OPTIONS,
    )


def _with_dense_rows(rows: torch.Tensor) -> torch.Tensor:
    """`rows` itself unless its heads do not lie side by side."""
    head_dim = rows.shape[2]
    return rows if rows.stride()[1:] == (head_dim, 1) else rows.contiguous()
