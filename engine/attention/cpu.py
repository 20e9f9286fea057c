"""Paged attention on the CPU with torch alone.

The pool is head-major, [kv_head, num_blocks, block_size * head_dim] per layer: the blocks of a
sequence come together with one `index_select` of long rows. Grouped-query attention folds the query
heads that share a KV head into query rows, so no key is repeated. One-token sequences (decodes) of
similar length share a call; every longer one has its own.

Exactness. `scaled_dot_product_attention` blocks its sums by the shapes it is given, so a row's
bits depend on its company, except when query rows and KV tokens come in certain multiples (or in
tiles of one height) and an explicit mask says what is visible. Which, is measured on this machine
(`engine.attention.cpu_padding`). Masked tokens then add exact zeros, wherever the padding ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.cpu_padding import AttentionPadding, find_padding
from engine.errors import KernelUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

# Decodes share a call while the shortest of them is padded to at most this much of its length.
_MAX_STRETCH = 1.5


@dataclass(frozen=True, slots=True)
class _Group:
    """Sequences with equally many queries, attended in one call.

    rows: [num_seqs * num_queries] rows of the step's tensors, or a slice of them.
    blocks: [num_seqs * padded_len / block_size] physical blocks; the null block fills up.
    stale: positions in the gathered tokens that lie in a last block but past its sequence: what is
        there belongs to nobody and may be anything, NaN included.
    mask: additive, [num_seqs, 1, 1 or num_query_rows, padded_len], 0 or -inf.
    """

    rows: slice | torch.Tensor
    num_seqs: int
    num_queries: int
    padded_len: int
    blocks: torch.Tensor
    stale: torch.Tensor | None
    mask: torch.Tensor


class CpuAttention(AttentionBackend):
    """`padding` overrides what the self-test would find; without `deterministic` nothing is padded
    beyond whole blocks."""

    def __init__(
        self,
        layout: KVLayout,
        num_query_heads: int,
        scale: float,
        *,
        deterministic: bool = True,
        padding: AttentionPadding | None = None,
    ) -> None:
        super().__init__(layout, num_query_heads, scale)
        if layout.device.type != "cpu":
            raise KernelUnavailable(f"attention backend cpu cannot run on {layout.device}")
        shape = (
            layout.num_layers,
            layout.num_kv_heads,
            layout.num_blocks,
            layout.block_size * layout.head_dim,
        )
        self._keys = torch.zeros(shape, dtype=layout.dtype)
        self._values = torch.zeros(shape, dtype=layout.dtype)
        self._group_size = num_query_heads // layout.num_kv_heads
        self._scratch = torch.empty(0, dtype=layout.dtype)
        self._slots = torch.empty(0, dtype=torch.int64)
        self._groups: list[_Group] = []
        if padding is None and deterministic:
            padding = find_padding(CpuAttention, layout, num_query_heads, scale)
        self.padding = padding or AttentionPadding(query_rows=1, kv_tokens=1, is_exact=False)
        self.is_exact = self.padding.is_exact

    # ------------------------------------------------------------------------- the contract

    def prepare(self, batch: AttentionBatch) -> None:
        self._slots = batch.slots
        lengths = [batch.query_starts[i + 1] - batch.query_starts[i] for i in range(batch.num_seqs)]
        decodes = sorted(
            (i for i, length in enumerate(lengths) if length == 1),
            key=lambda i: batch.context_lens[i],
        )
        groups = _by_length(decodes, [self._padded(length) for length in batch.context_lens])
        groups += [[i] for i, length in enumerate(lengths) if length > 1]
        self._groups = [self._group(batch, group) for group in groups]

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        self._tokens(self._keys[layer]).index_copy_(1, self._slots, key.transpose(0, 1))
        self._tokens(self._values[layer]).index_copy_(1, self._slots, value.transpose(0, 1))

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        result = torch.empty_like(query)
        for group in self._groups:
            result[group.rows] = self._attend_group(layer, query[group.rows], group)
        return result

    def copy_blocks(self, copies: Sequence[tuple[int, int]]) -> None:
        for source, target in copies:
            self._keys[:, :, target] = self._keys[:, :, source]
            self._values[:, :, target] = self._values[:, :, source]

    def gather(self, layer: int, block_ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = torch.tensor(list(block_ids), dtype=torch.int64)
        keys, values = (
            self._tokens(pool[layer].index_select(1, blocks)).transpose(0, 1)
            for pool in (self._keys, self._values)
        )
        return keys, values

    # ---------------------------------------------------------------------------- one group

    def _attend_group(self, layer: int, query: torch.Tensor, group: _Group) -> torch.Tensor:
        """[rows of the group, num_query_heads, head_dim] -> the same shape."""
        shape = (group.num_seqs, self.layout.num_kv_heads, -1, self.layout.head_dim)
        keys, values = self._gather(layer, group)
        # [num_seqs, num_queries, kv, group, head_dim] -> rows of one KV head side by side
        folded = query.view(group.num_seqs, group.num_queries, *shape[1:]).transpose(1, 2)
        rows = folded.reshape(shape).to(self.layout.dtype)
        num_rows = rows.shape[2]
        rows = F.pad(rows, (0, 0, 0, self._padded_rows(num_rows) - num_rows))
        attended = self._attend_rows(rows, keys, values, group.mask)[:, :, :num_rows]
        unfolded = attended.reshape(
            group.num_seqs, shape[1], group.num_queries, self._group_size, shape[3]
        )
        return unfolded.transpose(1, 2).reshape(query.shape).to(query.dtype)

    def _attend_rows(
        self, rows: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """[num_seqs, num_kv_heads, num_query_rows, head_dim] -> the same shape."""
        height = self._padded_rows(self._group_size)
        is_whole = not self.padding.is_tiled or rows.shape[2] == height
        if is_whole:
            return F.scaled_dot_product_attention(
                rows, keys, values, attn_mask=mask, scale=self.scale
            )
        # One sequence, cut into tiles of a decode's height: every call has the same shapes.
        _, num_heads, num_rows, head_dim = rows.shape
        num_tiles = num_rows // height
        tiles = rows.view(num_heads, num_tiles, height, head_dim).transpose(0, 1)
        attended = F.scaled_dot_product_attention(
            tiles,
            keys.expand(num_tiles, -1, -1, -1),
            values.expand(num_tiles, -1, -1, -1),
            attn_mask=mask.view(num_tiles, 1, height, -1),
            scale=self.scale,
        )
        return attended.transpose(0, 1).reshape(rows.shape)

    def _gather(self, layer: int, group: _Group) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values, each [num_seqs, num_kv_heads, padded_len, head_dim], in scratch memory
        that is reused: a fresh allocation of this size costs more than the copy."""
        heads, width = self.layout.num_kv_heads, self.layout.block_size * self.layout.head_dim
        size = heads * len(group.blocks) * width
        if self._scratch.numel() < 2 * size:
            self._scratch = torch.empty(2 * size, dtype=self.layout.dtype)
        gathered = []
        for at, pool in enumerate((self._keys, self._values)):
            out = self._scratch[at * size : (at + 1) * size].view(heads, len(group.blocks), width)
            torch.index_select(pool[layer], 1, group.blocks, out=out)
            tokens = self._tokens(out)
            if group.stale is not None:
                tokens.index_fill_(1, group.stale, 0.0)
            tokens = tokens.view(heads, group.num_seqs, group.padded_len, self.layout.head_dim)
            gathered.append(tokens.transpose(0, 1))
        return gathered[0], gathered[1]

    def _group(self, batch: AttentionBatch, members: list[int]) -> _Group:
        size = self.layout.block_size
        context_lens = [batch.context_lens[i] for i in members]
        padded_len = self._padded(max(context_lens))
        blocks: list[int] = []
        stale: list[int] = []
        for at, (i, context_len) in enumerate(zip(members, context_lens, strict=True)):
            num_blocks = -(-context_len // size)
            blocks.extend(batch.block_tables[i][:num_blocks])
            blocks.extend([0] * (padded_len // size - num_blocks))
            first = at * padded_len
            stale.extend(range(first + context_len, first + num_blocks * size))
        start = batch.query_starts[members[0]]
        num_queries = batch.query_starts[members[0] + 1] - start
        is_decode = num_queries == 1
        return _Group(
            rows=torch.tensor([batch.query_starts[i] for i in members], dtype=torch.int64)
            if is_decode
            else slice(start, start + num_queries),
            num_seqs=len(members),
            num_queries=num_queries,
            padded_len=padded_len,
            blocks=torch.tensor(blocks, dtype=torch.int64),
            stale=torch.tensor(stale, dtype=torch.int64) if stale else None,
            mask=self._decode_mask(context_lens, padded_len)
            if is_decode
            else self._prefill_mask(num_queries, context_lens[0], padded_len),
        )

    def _decode_mask(self, context_lens: list[int], padded_len: int) -> torch.Tensor:
        visible = torch.tensor(context_lens)[:, None] > torch.arange(padded_len)
        return self._additive(visible)[:, None, None]

    def _prefill_mask(self, num_queries: int, context_len: int, padded_len: int) -> torch.Tensor:
        """Row r is query r // group_size; rows of padding see what the last query sees, so that no
        row is without a token (its softmax would be NaN)."""
        num_rows = num_queries * self._group_size
        row = torch.arange(self._padded_rows(num_rows)).clamp(max=num_rows - 1)
        num_visible = context_len - num_queries + 1 + row // self._group_size
        return self._additive(num_visible[:, None] > torch.arange(padded_len))[None, None]

    def _additive(self, visible: torch.Tensor) -> torch.Tensor:
        """torch would turn a boolean mask into this once per layer."""
        mask = torch.zeros(visible.shape, dtype=self.layout.dtype)
        return mask.masked_fill_(~visible, float("-inf"))

    def _padded(self, context_len: int) -> int:
        """Whole blocks, and a multiple of the KV padding."""
        size, multiple = self.layout.block_size, self.padding.kv_tokens
        padded = -(-context_len // multiple) * multiple
        while padded % size:
            padded += multiple
        return padded

    def _padded_rows(self, num_rows: int) -> int:
        multiple = self.padding.query_rows
        if self.padding.is_tiled:
            multiple *= -(-self._group_size // multiple)
        return -(-num_rows // multiple) * multiple

    def _tokens(self, blocks: torch.Tensor) -> torch.Tensor:
        """[kv_head, num_blocks, block_size * head_dim] -> [kv_head, num_tokens, head_dim]."""
        return blocks.view(blocks.shape[0], -1, self.layout.head_dim)


def _by_length(members: list[int], padded_lens: list[int]) -> list[list[int]]:
    """Cuts `members`, sorted by length, into runs whose lengths are alike once padded."""
    groups: list[list[int]] = []
    for i in members:
        if groups and padded_lens[i] <= _MAX_STRETCH * padded_lens[groups[-1][0]]:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups
