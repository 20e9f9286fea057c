"""Decode attention: few query rows, a long context, split over programs.

The split along the context with a second kernel that merges is Flash-Decoding (Dao, Haziza, Massa
and Sizov, 2023); here the size of a split is fixed, so that a sequence is computed alike in every
batch.
"""

# ruff: noqa: PLR0913, PLR0917 - a kernel takes its pointers and constants one by one

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from engine.attention.triton.geometry import COMPILE_OPTIONS, DECODE_ROWS
from engine.attention.triton.tiles import attend_split, load_rows, merge_splits, row_places

if TYPE_CHECKING:
    from engine.attention.triton.geometry import Geometry
    from engine.attention.triton.work import StepWork


@triton.jit(do_not_specialize=["table_stride", "partial_rows"])
def split_kernel(
    query: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    tables: tl.tensor,
    sequences: tl.tensor,
    splits: tl.tensor,
    partial_totals: tl.tensor,
    partial_softmax: tl.tensor,
    query_stride: tl.tensor,
    table_stride: tl.tensor,
    partial_rows: tl.tensor,
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
    """Program (split, KV head) -> its partial softmax."""
    split = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = tl.load(splits + split * 2)
    first = tl.load(splits + split * 2 + 1) * SPLIT
    first_token = tl.load(sequences + sequence * 3)
    num_queries = tl.load(sequences + sequence * 3 + 1)
    context = tl.load(sequences + sequence * 3 + 2)

    rows = tl.arange(0, ROWS)
    is_row = rows < num_queries * GROUP
    is_dim = tl.arange(0, HEAD_TILE) < HEAD_DIM
    places = row_places(rows, first_token, kv_head, query_stride, GROUP, HEAD_DIM, HEAD_TILE)
    rows_of_query = load_rows(query + places, is_row[:, None] & is_dim[None, :], keys, DOT_F32)
    total, maximum, weight = attend_split(
        rows_of_query,
        context - num_queries + 1 + rows // GROUP,
        keys,
        values,
        tables + sequence * table_stride,
        kv_head,
        first,
        tl.minimum(first + SPLIT, context),
        scale_log2,
        ROWS,
        NUM_KV_HEADS,
        HEAD_DIM,
        HEAD_TILE,
        BLOCK_SIZE,
        KV_TILE,
        DOT_F32,
    )

    partial = (split * NUM_KV_HEADS + kv_head).to(tl.int64) * partial_rows + rows
    tl.store(
        partial_totals + partial[:, None] * HEAD_DIM + tl.arange(0, HEAD_TILE)[None, :],
        total,
        mask=is_row[:, None] & is_dim[None, :],
    )
    tl.store(partial_softmax + partial * 2, maximum, mask=is_row)
    tl.store(partial_softmax + partial * 2 + 1, weight, mask=is_row)


@triton.jit(do_not_specialize=["partial_rows"])
def merge_kernel(
    output: tl.tensor,
    sequences: tl.tensor,
    merges: tl.tensor,
    partial_totals: tl.tensor,
    partial_softmax: tl.tensor,
    output_stride: tl.tensor,
    partial_rows: tl.tensor,
    ROWS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_TILE: tl.constexpr,
) -> None:
    """Program (decoded sequence, KV head): its splits, in order, to its rows of the output."""
    merge = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = tl.load(merges + merge * 3)
    first_split = tl.load(merges + merge * 3 + 1)
    num_splits = tl.load(merges + merge * 3 + 2)
    first_token = tl.load(sequences + sequence * 3)
    num_queries = tl.load(sequences + sequence * 3 + 1)

    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, HEAD_TILE)
    is_row = rows < num_queries * GROUP
    is_place = is_row[:, None] & (dims[None, :] < HEAD_DIM)
    total = tl.zeros((ROWS, HEAD_TILE), dtype=tl.float32)
    maximum = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((ROWS,), dtype=tl.float32)
    for split in range(first_split, first_split + num_splits):
        partial = (split * NUM_KV_HEADS + kv_head).to(tl.int64) * partial_rows + rows
        total, maximum, weight = merge_splits(
            total,
            maximum,
            weight,
            tl.load(
                partial_totals + partial[:, None] * HEAD_DIM + dims[None, :],
                mask=is_place,
                other=0.0,
            ),
            tl.load(partial_softmax + partial * 2, mask=is_row, other=0.0),
            tl.load(partial_softmax + partial * 2 + 1, mask=is_row, other=1.0),
        )

    places = row_places(rows, first_token, kv_head, output_stride, GROUP, HEAD_DIM, HEAD_TILE)
    tl.store(output + places, total / weight[:, None], mask=is_place)


class DecodeBuffers:
    """Room for the partial softmaxes of one step, shared by its layers.

    totals: [num_splits, num_kv_heads, rows, head_dim]; softmax: [num_splits, num_kv_heads, rows,
    2] maximum and sum of weights; float32.
    """

    def __init__(self, work: StepWork, geometry: Geometry) -> None:
        places = (len(work.splits), geometry.num_kv_heads, work.max_decode_rows)
        device = work.splits.device
        self.totals = torch.empty((*places, geometry.head_dim), dtype=torch.float32, device=device)
        self.softmax = torch.empty((*places, 2), dtype=torch.float32, device=device)


def decode(
    query: torch.Tensor,
    output: torch.Tensor,
    pool: tuple[torch.Tensor, torch.Tensor],
    work: StepWork,
    buffers: DecodeBuffers,
    geometry: Geometry,
) -> None:
    """Fill the rows of `output` that belong to decoded sequences.

    query, output: [num_tokens, num_query_heads, head_dim], each token contiguous; pool: keys and
    values of the layer, contiguous [num_blocks, num_kv_heads, block_size, head_dim].
    """
    keys, values = pool
    shape = geometry.shape_constants()
    split_kernel[(len(work.splits), geometry.num_kv_heads)](
        query,
        keys,
        values,
        work.tables,
        work.sequences,
        work.splits,
        buffers.totals,
        buffers.softmax,
        query.stride(0),
        work.tables.shape[1],
        work.max_decode_rows,
        geometry.scale_log2,
        ROWS=DECODE_ROWS,
        **shape,
        num_warps=4,
        num_stages=3,
        **COMPILE_OPTIONS,
    )
    merge_kernel[(len(work.merges), geometry.num_kv_heads)](
        output,
        work.sequences,
        work.merges,
        buffers.totals,
        buffers.softmax,
        output.stride(0),
        work.max_decode_rows,
        ROWS=DECODE_ROWS,
        NUM_KV_HEADS=geometry.num_kv_heads,
        GROUP=geometry.group,
        HEAD_DIM=geometry.head_dim,
        HEAD_TILE=geometry.head_tile,
        num_warps=4,
        **COMPILE_OPTIONS,
    )
