"""Prefill attention: many query rows of one sequence against its paged context.

The tiling of the queries is that of FlashAttention-2 (Dao, 2023); a chunk sees what was cached
before it and itself, causally, all of it through the block table.
"""

# ruff: noqa: PLR0913, PLR0917 - a kernel takes its pointers and constants one by one

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from engine.attention.triton.geometry import COMPILE_OPTIONS
from engine.attention.triton.tiles import attend_split, load_rows, merge_splits, row_places

if TYPE_CHECKING:
    import torch

    from engine.attention.triton.geometry import Geometry
    from engine.attention.triton.work import StepWork


@triton.jit(do_not_specialize=["table_stride"])
def prefill_kernel(
    query: tl.tensor,
    output: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    tables: tl.tensor,
    sequences: tl.tensor,
    prefill_tiles: tl.tensor,
    query_stride: tl.tensor,
    output_stride: tl.tensor,
    table_stride: tl.tensor,
    scale_log2: tl.tensor,
    ROWS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_TILE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KV_TILE: tl.constexpr,
    SPLIT: tl.constexpr,
    DOT_F32: tl.constexpr,
) -> None:
    """Program (tile of query rows, KV head) -> those rows of the output."""
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = tl.load(prefill_tiles + tile * 2)
    first_row = tl.load(prefill_tiles + tile * 2 + 1)
    first_token = tl.load(sequences + sequence * 3)
    num_queries = tl.load(sequences + sequence * 3 + 1)
    context = tl.load(sequences + sequence * 3 + 2)

    rows = first_row + tl.arange(0, ROWS)
    is_place = (rows < num_queries * GROUP)[:, None] & (tl.arange(0, HEAD_TILE) < HEAD_DIM)[None, :]
    places = row_places(rows, first_token, kv_head, query_stride, GROUP, HEAD_DIM, HEAD_TILE)
    rows_of_query = load_rows(query + places, is_place, keys, DOT_F32)

    seen_by_first_query = context - num_queries + 1
    visible = seen_by_first_query + rows // GROUP
    last_row = tl.minimum(first_row + ROWS, num_queries * GROUP) - 1
    end = seen_by_first_query + last_row // GROUP
    total = tl.zeros((ROWS, HEAD_TILE), dtype=tl.float32)
    maximum = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((ROWS,), dtype=tl.float32)
    for first in range(0, end, SPLIT):
        next_total, next_maximum, next_weight = attend_split(
            rows_of_query,
            visible,
            keys,
            values,
            tables + sequence * table_stride,
            kv_head,
            first,
            tl.minimum(first + SPLIT, end),
            scale_log2,
            ROWS,
            NUM_KV_HEADS,
            HEAD_DIM,
            HEAD_TILE,
            BLOCK_SIZE,
            KV_TILE,
            DOT_F32,
        )
        total, maximum, weight = merge_splits(
            total, maximum, weight, next_total, next_maximum, next_weight
        )
    places = row_places(rows, first_token, kv_head, output_stride, GROUP, HEAD_DIM, HEAD_TILE)
    tl.store(output + places, total / weight[:, None], mask=is_place)


def prefill(
    query: torch.Tensor,
    output: torch.Tensor,
    pool: tuple[torch.Tensor, torch.Tensor],
    work: StepWork,
    geometry: Geometry,
) -> None:
    """Fill the rows of `output` that belong to prefilled sequences.

    query, output: [num_tokens, num_query_heads, head_dim], each token contiguous; pool: keys and
    values of the layer, contiguous [num_blocks, num_kv_heads, block_size, head_dim].
    """
    keys, values = pool
    prefill_kernel[(len(work.prefill_tiles), geometry.num_kv_heads)](
        query,
        output,
        keys,
        values,
        work.tables,
        work.sequences,
        work.prefill_tiles,
        query.stride(0),
        output.stride(0),
        work.tables.shape[1],
        geometry.scale_log2,
        ROWS=geometry.tiles.prefill_rows,
        **geometry.shape_constants(),
        num_warps=4 if geometry.head_tile <= 64 else 8,  # fewer would spill registers
        num_stages=3,
        **COMPILE_OPTIONS,
    )
