"""What decode and prefill share: a tile of query rows against one split of a paged context.

Online softmax: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. Its use
over tiles, with one division at the end: FlashAttention-2, Dao, 2023. Keys and values behind a
block table: PagedAttention, Kwon et al., 2023.

Both kernels close the running softmax after each split and merge the splits in order, so the
operations behind a query row are the same whichever kernel computes it, in whichever chunk and
batch: KV tiles start at multiples of their fixed size counted from the first token of the context,
and a tile that a row may not see adds exact zeros to it.
"""

# ruff: noqa: PLR0913, PLR0917 - a kernel takes its pointers and constants one by one

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_rows(
    rows: tl.tensor, is_place: tl.tensor, keys: tl.tensor, DOT_F32: tl.constexpr
) -> tl.tensor:
    """A tile of query rows, zero outside `is_place`, in the type in which it meets the keys."""
    tile = tl.load(rows, mask=is_place, other=0.0)
    if DOT_F32:
        return tile.to(tl.float32)
    else:  # noqa: RET505 - a kernel's constant branches are two returns, or a type error
        return tile.to(keys.dtype.element_ty)


@triton.jit
def attend_split(
    query: tl.tensor,
    visible: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    table: tl.tensor,
    kv_head: tl.tensor,
    first: tl.tensor,
    end: tl.tensor,
    scale_log2: tl.tensor,
    ROWS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_TILE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KV_TILE: tl.constexpr,
    DOT_F32: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Query rows [ROWS, HEAD_TILE] against the KV tokens [first, end) of one sequence.

    visible: [ROWS], how many tokens of the context each row may see. Nothing outside [first, end)
    is read. Returns the sums of weighted values [ROWS, HEAD_TILE], the maxima (base 2) and the
    sums of weights, both [ROWS], all float32; a row that sees nothing has maximum -inf, sum 0.
    """
    dims = tl.arange(0, HEAD_TILE)
    total = tl.zeros((ROWS, HEAD_TILE), dtype=tl.float32)
    maximum = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((ROWS,), dtype=tl.float32)
    for tile in range(first, end, KV_TILE):
        positions = tile + tl.arange(0, KV_TILE)
        is_present = positions < end
        block = tl.load(table + positions // BLOCK_SIZE, mask=is_present, other=0).to(tl.int64)
        place = (block * NUM_KV_HEADS + kv_head) * BLOCK_SIZE + positions % BLOCK_SIZE

        key = tl.load(
            keys + place[None, :] * HEAD_DIM + dims[:, None],
            mask=is_present[None, :] & (dims[:, None] < HEAD_DIM),
            other=0.0,
        )
        if DOT_F32:
            key = key.to(tl.float32)
        logits = tl.dot(query, key, input_precision="ieee") * scale_log2
        logits = tl.where(positions[None, :] < visible[:, None], logits, float("-inf"))

        new_maximum = tl.maximum(maximum, tl.max(logits, axis=1))
        # a row that has seen nothing yet: -inf - -inf is not a number, -inf - 0 is
        reference = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)
        fading = tl.exp2(maximum - reference)
        weights = tl.exp2(logits - reference[:, None])
        weight = weight * fading + tl.sum(weights, axis=1)
        maximum = new_maximum

        value = tl.load(
            values + place[:, None] * HEAD_DIM + dims[None, :],
            mask=is_present[:, None] & (dims[None, :] < HEAD_DIM),
            other=0.0,
        )
        if DOT_F32:
            value = value.to(tl.float32)
        total = tl.dot(
            weights.to(value.dtype), value, total * fading[:, None], input_precision="ieee"
        )
    return total, maximum, weight


@triton.jit
def merge_splits(
    total: tl.tensor,
    maximum: tl.tensor,
    weight: tl.tensor,
    next_total: tl.tensor,
    next_maximum: tl.tensor,
    next_weight: tl.tensor,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Two partial softmaxes, as `attend_split` returns them, as one. The first one may be empty
    (-inf, 0), and then the result is the second, bit by bit."""
    new_maximum = tl.maximum(maximum, next_maximum)
    reference = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)
    fading = tl.exp2(maximum - reference)
    next_fading = tl.exp2(next_maximum - reference)
    return (
        total * fading[:, None] + next_total * next_fading[:, None],
        new_maximum,
        weight * fading + next_weight * next_fading,
    )


@triton.jit
def row_places(
    rows: tl.tensor,
    first_token: tl.tensor,
    kv_head: tl.tensor,
    token_stride: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_TILE: tl.constexpr,
) -> tl.tensor:
    """Offsets [rows, HEAD_TILE] of query rows in [num_tokens, num_query_heads, head_dim], whose
    tokens lie `token_stride` elements apart."""
    token = (first_token + rows // GROUP).to(tl.int64)
    query_head = kv_head * GROUP + rows % GROUP
    start = token * token_stride + query_head * HEAD_DIM
    return start[:, None] + tl.arange(0, HEAD_TILE)[None, :]
