"""The decoder: one class for the Llama family, on plain tensors.

Pre-norm blocks of grouped-query attention with rotary positions and a gated SiLU network; the
switches are `engine.models.config.ModelConfig`. Nothing is a `torch.nn.Module`: weights are
attributes, and the forward pass is read from top to bottom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from engine.layers.rotary import RotaryEmbedding, Rotation
from engine.layers.row_padding import RowFunction, RowPadding, find_row_padding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.attention.base import AttentionBackend
    from engine.layers.linear import Linear
    from engine.layers.norm import RMSNorm
    from engine.models.config import ModelConfig


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """qkv: queries, keys and values of all heads, side by side. gate_up: gate, then up."""

    attention_norm: RMSNorm
    qkv: Linear
    output: Linear
    mlp_norm: RMSNorm
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """embedding: [vocab_size, hidden_size]. head: the projection to the vocabulary, which may share
    the embedding's memory."""

    embedding: torch.Tensor
    layers: tuple[DecoderLayer, ...]
    norm: RMSNorm
    head: Linear

    @property
    def num_bytes(self) -> int:
        """Of all matrices; a head that is the embedding counts once."""
        matrices = [self.embedding]
        for layer in self.layers:
            projections = (layer.qkv, layer.output, layer.gate_up, layer.down)
            matrices += [projection.weight for projection in projections]
        if self.head.weight is not self.embedding:
            matrices.append(self.head.weight)
        return sum(matrix.nbytes for matrix in matrices)


class Decoder:
    """`num_positions`: the most tokens of prompt + output that will be asked for."""

    def __init__(self, config: ModelConfig, weights: DecoderWeights, num_positions: int) -> None:
        self.config = config
        self.weights = weights
        self.device = weights.embedding.device
        self.dtype = weights.embedding.dtype
        self._rotary = RotaryEmbedding(config.rope, config.head_dim, num_positions, self.device)
        self.row_padding = RowPadding()
        self.head_padding = RowPadding()

    def make_exact(self, max_rows: int, max_sampled_rows: int) -> bool:
        """Find the row counts at which a row's bits do not depend on the rows beside it, and use
        only those from now on. False when there are none on this machine.

        max_rows: tokens of the largest step. max_sampled_rows: sequences that sample in it.
        """
        norm = RowFunction(self.weights.norm, self.config.hidden_size)
        with torch.inference_mode():
            self.row_padding = find_row_padding(
                self._projections(), list(self._row_functions()), max_rows
            )
            self.head_padding = find_row_padding([self.weights.head], [norm], max_sampled_rows)
        return self.row_padding.is_exact and self.head_padding.is_exact

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        attention: AttentionBackend,
        sampled_rows: Sequence[int],
    ) -> torch.Tensor:
        """One step over flat tokens, whose sequences `attention` has been prepared for.

        token_ids, positions: [num_tokens] int64.
        sampled_rows: the rows whose logits are wanted; only they meet the vocabulary.

        Returns [len(sampled_rows), vocab_size] float32.
        """
        with torch.inference_mode():
            hidden = self._hidden(token_ids, positions, attention)
            return self._logits(hidden, sampled_rows)

    def _hidden(
        self, token_ids: torch.Tensor, positions: torch.Tensor, attention: AttentionBackend
    ) -> torch.Tensor:
        """[num_rows, hidden_size] behind the last layer, rows of padding at the end."""
        num_tokens = len(token_ids)
        filling = (0, self.row_padding.padded(num_tokens) - num_tokens)
        hidden = F.embedding(F.pad(token_ids, filling), self.weights.embedding)
        rotation = self._rotary.at(F.pad(positions, filling))
        for index, layer in enumerate(self.weights.layers):
            attended = self._attend(index, layer, hidden, rotation, (attention, num_tokens))
            hidden = hidden + layer.output(attended)
            hidden = hidden + layer.down(gated_silu(layer.gate_up(layer.mlp_norm(hidden))))
        return hidden

    def _attend(
        self,
        index: int,
        layer: DecoderLayer,
        hidden: torch.Tensor,
        rotation: Rotation,
        attention: tuple[AttentionBackend, int],
    ) -> torch.Tensor:
        """[num_rows, num_query_heads * head_dim]; rows of padding come out as zeros."""
        config = self.config
        backend, num_tokens = attention
        num_rows = len(hidden)
        qkv = layer.qkv(layer.attention_norm(hidden)).view(num_rows, -1, config.head_dim)
        num_rotated = config.num_query_heads + config.num_kv_heads
        rotated = rotation(qkv[:, :num_rotated])[:num_tokens]
        query, key = rotated.split((config.num_query_heads, config.num_kv_heads), dim=1)
        backend.write(index, key, qkv[:num_tokens, num_rotated:])
        attended = backend.attend(index, query).reshape(num_tokens, -1)
        return F.pad(attended, (0, 0, 0, num_rows - num_tokens))

    def _logits(self, hidden: torch.Tensor, sampled_rows: Sequence[int]) -> torch.Tensor:
        rows = torch.tensor(sampled_rows, dtype=torch.int64, device=self.device)
        num_rows = len(rows)
        filling = self.head_padding.padded(num_rows) - num_rows
        chosen = F.pad(hidden.index_select(0, rows), (0, 0, 0, filling))
        return self.weights.head(self.weights.norm(chosen))[:num_rows].float()

    def _projections(self) -> list[Linear]:
        return [
            linear
            for layer in self.weights.layers
            for linear in (layer.qkv, layer.output, layer.gate_up, layer.down)
        ]

    def _row_functions(self) -> Iterator[RowFunction]:
        config, layer = self.config, self.weights.layers[0]
        yield RowFunction(layer.attention_norm, config.hidden_size)
        yield RowFunction(gated_silu, 2 * config.intermediate_size)
        num_rotated = config.num_query_heads + config.num_kv_heads

        def rotate(rows: torch.Tensor) -> torch.Tensor:
            last = self._rotary.num_positions - 1
            everywhere = torch.full((len(rows),), last, dtype=torch.int64, device=self.device)
            return self._rotary.at(everywhere)(rows.view(len(rows), num_rotated, config.head_dim))

        yield RowFunction(rotate, num_rotated * config.head_dim)


def gated_silu(gate_up: torch.Tensor) -> torch.Tensor:
    """[num_rows, 2 * size] -> [num_rows, size]: silu of the first half times the second."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate).mul_(up)
