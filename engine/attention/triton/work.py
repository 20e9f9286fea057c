"""The work lists of one step: which program computes what, made on the host once for all layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from engine.attention.triton.geometry import DECODE_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engine.attention.base import AttentionBatch
    from engine.attention.triton.geometry import Geometry

ALIGNMENT = 4  # int32 elements


@dataclass(frozen=True, slots=True)
class StepWork:
    """All int32 on the device of the pool.

    Sequences whose query rows fit one decode tile (plain decodes, and chunks of very few tokens)
    are split along their context; all others are cut into tiles of query rows.

    tables: [num_seqs, max_blocks] physical blocks, padded with the null block.
    sequences: [num_seqs, 3] first token of the step, number of queries, context length.
    splits: [num_splits, 2] sequence, split of its context; those of a sequence are neighbours.
    merges: [num_merges, 3] sequence, its first entry in `splits`, how many it has.
    prefill_tiles: [num_tiles, 2] sequence, first query row of the tile.
    max_decode_rows: the most query rows of a sequence that is decoded.
    """

    tables: torch.Tensor
    sequences: torch.Tensor
    splits: torch.Tensor
    merges: torch.Tensor
    prefill_tiles: torch.Tensor
    max_decode_rows: int


def plan_work(batch: AttentionBatch, geometry: Geometry, device: torch.device) -> StepWork:
    """Lists the programs of a step; one copy to the device.

    A sequence's share of the lists depends on that sequence alone.
    """
    starts = np.asarray(batch.query_starts, dtype=np.int32)
    contexts = np.asarray(batch.context_lens, dtype=np.int32)
    queries = np.diff(starts)
    rows = queries * geometry.group
    numbers = np.arange(batch.num_seqs, dtype=np.int32)
    is_decoded = (rows > 0) & (rows <= DECODE_ROWS)
    is_prefilled = rows > DECODE_ROWS

    split_owner, split_index = _counted(
        numbers[is_decoded], -(-contexts[is_decoded] // geometry.tiles.split)
    )
    first_split, num_splits = _runs(split_owner, numbers[is_decoded])
    tile_owner, tile_index = _counted(
        numbers[is_prefilled], -(-rows[is_prefilled] // geometry.tiles.prefill_rows)
    )
    parts = (
        _padded_tables(batch.block_tables, -(-contexts // geometry.block_size)),
        np.stack((starts[:-1], queries, contexts), axis=1),
        np.stack((split_owner, split_index), axis=1),
        np.stack((numbers[is_decoded], first_split, num_splits), axis=1),
        np.stack((tile_owner, tile_index * geometry.tiles.prefill_rows), axis=1),
    )
    tables, sequences, splits, merges, tiles = _on_device(parts, device)
    return StepWork(
        tables=tables,
        sequences=sequences,
        splits=splits,
        merges=merges,
        prefill_tiles=tiles,
        max_decode_rows=int(rows[is_decoded].max(initial=0)),
    )


def _counted(
    owners: NDArray[np.int32], counts: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Each owner as often as its count, and beside it 0, 1, 2, ..."""
    repeated = np.repeat(owners, counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return repeated, (np.arange(len(repeated)) - before).astype(np.int32)


def _runs(
    owners: NDArray[np.int32], wanted: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where the run of each wanted owner starts in ascending `owners`, and its length."""
    first = np.searchsorted(owners, wanted, side="left").astype(np.int32)
    after = np.searchsorted(owners, wanted, side="right").astype(np.int32)
    return first, after - first


def _padded_tables(
    tables: Sequence[Sequence[int]], num_blocks: NDArray[np.int32]
) -> NDArray[np.int32]:
    padded = np.zeros((len(tables), int(num_blocks.max(initial=1))), dtype=np.int32)
    for row, table, length in zip(padded, tables, num_blocks, strict=True):
        assert len(table) >= length, "a block table is shorter than its context"
        row[:length] = table[:length]
    return padded


def _on_device(
    parts: tuple[NDArray[np.int32], ...], device: torch.device
) -> tuple[torch.Tensor, ...]:
    """Views of one tensor: many small copies would each wait for the device. Each view starts at
    a multiple of 16 bytes: Triton would compile the kernels anew for one that does not."""
    room = [-(-part.size // ALIGNMENT) * ALIGNMENT for part in parts]
    packed = np.zeros(sum(room), dtype=np.int32)
    starts = np.cumsum(room) - room
    for part, start in zip(parts, starts, strict=True):
        packed[start : start + part.size] = part.ravel()
    on_device = torch.from_numpy(packed).to(device)
    return tuple(
        on_device[start : start + part.size].view(part.shape)
        for part, start in zip(parts, starts.tolist(), strict=True)
    )
