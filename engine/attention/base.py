"""The contract of an attention backend: it owns the KV pool and reads it
only through block tables.

One backend serves all layers. A step calls `prepare` once, then for each layer `write`, `attend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


@dataclass(frozen=True, slots=True)
class KVLayout:
    """Shape of the pool. `num_blocks` counts the null block 0, which is never written."""

    num_layers: int
    num_blocks: int
    block_size: int
    num_kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    @property
    def bytes_per_block(self) -> int:
        """Keys and values of all layers."""
        per_token: int = self.num_kv_heads * self.head_dim * self.dtype.itemsize
        return 2 * self.num_layers * self.block_size * per_token


@dataclass(frozen=True, slots=True)
class AttentionBatch:
    """The sequences of one step, in the order of their rows.

    query_starts: [num_seqs + 1], first row of each sequence's queries; the last is num_tokens.
    context_lens: [num_seqs], KV tokens visible to the sequence's LAST query (computed before this
        step + scheduled in it); query i of n sees the first `context_len - n + 1 + i`.
    block_tables: per sequence, the physical blocks of its context in order (length
        ceil(context_len / block_size); longer is allowed, the rest is not read).
    slots: [num_tokens] int64, `block * block_size + offset` where each token's KV is written.
    """

    query_starts: Sequence[int]
    context_lens: Sequence[int]
    block_tables: Sequence[Sequence[int]]
    slots: torch.Tensor

    @property
    def num_seqs(self) -> int:
        return len(self.context_lens)


class AttentionBackend(ABC):
    """Grouped-query attention over a paged pool. Query head h reads KV head
    `h // (num_query_heads // num_kv_heads)`. Results have the dtype of the queries.

    is_exact: a row's bits do not depend on the rows, sequences and padding it is computed with.
    """

    is_exact: bool = False

    def __init__(self, layout: KVLayout, num_query_heads: int, scale: float) -> None:
        self.layout = layout
        self.num_query_heads = num_query_heads
        self.scale = scale

    @abstractmethod
    def prepare(self, batch: AttentionBatch) -> None:
        """Take the step's sequences; host-side work that all layers share is done here."""

    @abstractmethod
    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """Store this step's keys and values, [num_tokens, num_kv_heads, head_dim], at `slots`."""

    @abstractmethod
    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """[num_tokens, num_query_heads, head_dim] -> the same shape. Causal inside the step; sees
        every token of the context. Called after `write`."""

    @abstractmethod
    def copy_blocks(self, copies: Sequence[tuple[int, int]]) -> None:
        """Copy whole blocks (from, to) in all layers."""

    @abstractmethod
    def gather(self, layer: int, block_ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of blocks, each [len(block_ids) * block_size, num_kv_heads, head_dim]:
        for tests and for moving blocks."""
