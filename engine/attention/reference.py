"""The reference backend: slow and obviously right. Every other backend is tested against it.

One query at a time in float32: softmax(q . K^T * scale) . V over the tokens that it may see, read
one by one through the block table. Runs on any device; no padding, no batching, no masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout

if TYPE_CHECKING:
    from collections.abc import Sequence


class ReferenceAttention(AttentionBackend):
    is_exact = True

    def __init__(self, layout: KVLayout, num_query_heads: int, scale: float) -> None:
        super().__init__(layout, num_query_heads, scale)
        shape = (
            layout.num_layers,
            layout.num_blocks * layout.block_size,
            layout.num_kv_heads,
            layout.head_dim,
        )
        self._keys = torch.zeros(shape, dtype=layout.dtype, device=layout.device)
        self._values = torch.zeros_like(self._keys)
        self._batch: AttentionBatch | None = None

    def prepare(self, batch: AttentionBatch) -> None:
        self._batch = batch

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        batch = self._prepared()
        for row, slot in enumerate(batch.slots.tolist()):
            self._keys[layer, slot] = key[row]
            self._values[layer, slot] = value[row]

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        batch = self._prepared()
        result = torch.empty_like(query)
        for sequence in range(batch.num_seqs):
            start, end = batch.query_starts[sequence], batch.query_starts[sequence + 1]
            slots = self._slots(batch.block_tables[sequence], batch.context_lens[sequence])
            for row in range(start, end):
                num_visible = batch.context_lens[sequence] - (end - row - 1)
                result[row] = self._attend_one(layer, query[row], slots[:num_visible])
        return result

    def copy_blocks(self, copies: Sequence[tuple[int, int]]) -> None:
        size = self.layout.block_size
        for source, target in copies:
            for pool in (self._keys, self._values):
                pool[:, target * size : (target + 1) * size] = pool[
                    :, source * size : (source + 1) * size
                ]

    def gather(self, layer: int, block_ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        slots = self._slots(block_ids, len(block_ids) * self.layout.block_size)
        return self._keys[layer, slots], self._values[layer, slots]

    def _attend_one(self, layer: int, query: torch.Tensor, slots: list[int]) -> torch.Tensor:
        """[num_query_heads, head_dim] of one token over the tokens in `slots`."""
        group = self.num_query_heads // self.layout.num_kv_heads
        keys = self._keys[layer, slots].float()  # [num_visible, num_kv_heads, head_dim]
        values = self._values[layer, slots].float()
        heads = []
        for head in range(self.num_query_heads):
            weights = torch.softmax(keys[:, head // group] @ query[head].float() * self.scale, 0)
            heads.append(weights @ values[:, head // group])
        return torch.stack(heads).to(query.dtype)

    def _slots(self, block_table: Sequence[int], num_tokens: int) -> list[int]:
        size = self.layout.block_size
        return [block_table[at // size] * size + at % size for at in range(num_tokens)]

    def _prepared(self) -> AttentionBatch:
        assert self._batch is not None, "prepare() comes before write() and attend()"
        return self._batch
