"""Which padding makes the CPU's attention exact: found by trying, on the machine it will run on.

The kernels behind `scaled_dot_product_attention` pick their blocking by shape and by instruction
set. Measured: bfloat16 with AMX holds from 4 query rows and 64 KV tokens on; float32 with AVX512
needs 256 KV tokens, and 8 query rows at head_dim 128, 16 at 256. With AVX2 only, no multiple of
rows is enough, because the kernel itself takes 32, 64 or 256 of them at a time by how many there
are; tiles of one height are exact. No rule covers all machines.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.attention.base import AttentionBatch, KVLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.attention.base import AttentionBackend

_log = logging.getLogger(__name__)

# Past two of the kernel's KV blocks (512 tokens each), so that their merging is tried too.
_NUM_TOKENS = 1100
# Positions around the borders of 16, 128, 256 and 512 tokens.
_DECODES = (0, 14, 31, 127, 130, 256, 300, 511, 512, 700, 1024, 1099)
_CHUNKS = ((0, 5), (253, 259), (300, 348), (600, 664), (500, 700), (1000, 1100))


@dataclass(frozen=True, slots=True)
class AttentionPadding:
    """Query rows and KV tokens come in multiples of these.

    is_tiled: a prompt's rows are cut into tiles of as many as one decode has (the query heads that
        share a KV head, padded), so that the kernel sees one height only.
    is_exact: a row's bits were found not to depend on the rows, sequences and padding it is
        computed with.
    """

    query_rows: int
    kv_tokens: int
    is_tiled: bool = False
    is_exact: bool = True


# Cheapest first.
CANDIDATES = (
    AttentionPadding(4, 128),
    AttentionPadding(4, 256),
    AttentionPadding(8, 256),
    AttentionPadding(16, 256),
    AttentionPadding(32, 256),
    AttentionPadding(32, 512),
    AttentionPadding(16, 256, is_tiled=True),
    AttentionPadding(4, 256, is_tiled=True),
    AttentionPadding(16, 512, is_tiled=True),
    AttentionPadding(4, 512, is_tiled=True),
)


def find_padding(
    create: Callable[..., AttentionBackend], layout: KVLayout, num_query_heads: int, scale: float
) -> AttentionPadding:
    """The first of CANDIDATES under which decodes, batches of decodes and chunks of any size give
    the bits that one whole prefill gives. Where none holds, the last, marked as not exact.

    create: the backend's class, called with `padding=` one of the candidates.
    """
    num_blocks = -(-_NUM_TOKENS // layout.block_size) + 1
    small = dataclasses.replace(layout, num_layers=1, num_blocks=num_blocks)
    for padding in CANDIDATES:
        if _is_exact(create(small, num_query_heads, scale, padding=padding)):
            return padding
    _log.warning(
        "attention on this CPU is not exact at %s, %d heads of %d: outputs may depend on the batch",
        layout.dtype,
        num_query_heads,
        layout.head_dim,
    )
    return dataclasses.replace(CANDIDATES[-1], is_exact=False)


def _is_exact(backend: AttentionBackend) -> bool:
    layout = backend.layout
    generator = torch.Generator().manual_seed(0)
    table = (torch.randperm(layout.num_blocks - 1, generator=generator) + 1).tolist()
    slots = torch.tensor(
        [table[at // layout.block_size] * layout.block_size + at % layout.block_size
         for at in range(_NUM_TOKENS)]
    )  # fmt: skip
    keys, values = _cancelling(layout, generator)
    queries = torch.randn(
        (_NUM_TOKENS, backend.num_query_heads, layout.head_dim), generator=generator
    ).to(layout.dtype)

    backend.prepare(AttentionBatch([0, _NUM_TOKENS], [_NUM_TOKENS], [table], slots))
    backend.write(0, keys, values)
    whole = backend.attend(0, queries)
    for ranges in _batches():
        rows = torch.cat([torch.arange(start, end) for start, end in ranges])
        starts = [0]
        for start, end in ranges:
            starts.append(starts[-1] + end - start)
        batch = AttentionBatch(starts, [end for _, end in ranges], [table] * len(ranges), rows)
        backend.prepare(batch)
        if not torch.equal(backend.attend(0, queries[rows]), whole[rows]):
            return False
    return True


def _batches() -> Iterator[Sequence[tuple[int, int]]]:
    """Token ranges that are attended in one step."""
    decodes = [(at, at + 1) for at in _DECODES]
    for decode in decodes:
        yield [decode]
    for size in (2, 3, 4, 8, len(decodes)):
        yield decodes[-size:]
    for chunk in _CHUNKS:
        yield [chunk]


def _cancelling(layout: KVLayout, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values, [tokens, kv_heads, head_dim], in pairs of equal keys and nearly opposite
    values: what is left of the sums is small beside their terms, so that another order of adding
    shows in the result even after it is rounded to 8 bits."""
    shape = (_NUM_TOKENS, layout.num_kv_heads, layout.head_dim)
    pair = torch.arange(_NUM_TOKENS) // 2 * 2
    sign = torch.where(torch.arange(_NUM_TOKENS) % 2 == 0, 1.0, -1.0)[:, None, None]
    keys = torch.randn(shape, generator=generator)[pair]
    values = torch.randn(shape, generator=generator)[pair]
    values = values * sign * (1.0 + 0.01 * torch.randn(shape, generator=generator))
    return keys.to(layout.dtype), values.to(layout.dtype)
