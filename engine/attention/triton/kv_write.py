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


TILE_ELEMENTS = 2048
"""Elements of keys that one program moves, of as many tokens as that makes."""


@triton.jit(do_not_specialize=["num_tokens"])
def write_kernel(
    key: tl.tensor,
    value: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    num_tokens: tl.tensor,
    key_stride: tl.tensor,
    value_stride: tl.tensor,
    TOKENS: tl.constexpr,
    TOKEN_TILE: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
) -> None:
    """Program: TOKENS tokens, each with the elements of all its KV heads in a row."""
    tokens = (tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)).to(tl.int64)
    is_token = tokens < num_tokens
    slot = tl.load(slots + tokens, mask=is_token, other=0)
    elements = tl.arange(0, TOKEN_TILE)
    is_element = is_token[:, None] & (elements < NUM_KV_HEADS * HEAD_DIM)[None, :]

    start = slot // BLOCK_SIZE * (NUM_KV_HEADS * BLOCK_SIZE) + slot % BLOCK_SIZE
    row = start[:, None] + (elements // HEAD_DIM * BLOCK_SIZE)[None, :]
    place = row * HEAD_DIM + (elements % HEAD_DIM)[None, :]
    new_key = tl.load(key + tokens[:, None] * key_stride + elements[None, :], mask=is_element)
    new_value = tl.load(value + tokens[:, None] * value_stride + elements[None, :], mask=is_element)
    tl.store(keys + place, new_key, mask=is_element)
    tl.store(values + place, new_value, mask=is_element)


def write_kv(
    key: torch.Tensor,
    value: torch.Tensor,
    pool: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    geometry: Geometry,
) -> None:
    """Store key and value, [num_tokens, num_kv_heads, head_dim], each token contiguous, at
    `slots`, int64 and distinct.

    pool: keys and values of the layer, contiguous [num_blocks, num_kv_heads, block_size,
    head_dim].
    """
    keys, values = pool
    token_tile = next_power_of_two(geometry.num_kv_heads * geometry.head_dim)
    tokens = max(1, TILE_ELEMENTS // token_tile)
    write_kernel[(triton.cdiv(len(slots), tokens),)](
        key,
        value,
        keys,
        values,
        slots,
        len(slots),
        key.stride(0),
        value.stride(0),
        TOKENS=tokens,
        TOKEN_TILE=token_tile,
        NUM_KV_HEADS=geometry.num_kv_heads,
        HEAD_DIM=geometry.head_dim,
        BLOCK_SIZE=geometry.block_size,
        num_warps=4,
        **COMPILE_OPTIONS,
    )
