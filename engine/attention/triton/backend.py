"""The Triton backend: a pool of blocks on the GPU and the kernels that read and write it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from engine.attention.base import AttentionBackend
from engine.attention.triton.geometry import Geometry, TileSizes
from engine.attention.triton.work import StepWork, plan_work
from engine.errors import KernelUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.attention.base import AttentionBatch, KVLayout
    from engine.attention.triton.decode import DecodeBuffers

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class TritonAttention(AttentionBackend):
    """Grouped-query attention over a paged pool in Triton kernels.

    The pool is two tensors, keys and values, each [num_layers, num_blocks, num_kv_heads,
    block_size, head_dim]: a block is one piece of memory, and so are the tokens of a head in it.
    Sequences of a few query rows are decoded split along their context, all others are prefilled
    in tiles of query rows; a batch may hold both.

    Runs on CUDA, and on the CPU under Triton's interpreter (TRITON_INTERPRET=1 before `triton` is
    imported), which is for tests: it takes milliseconds for each tile of KV.
    """

    def __init__(
        self,
        layout: KVLayout,
        num_query_heads: int,
        scale: float,
        *,
        tiles: TileSizes | None = None,
    ) -> None:
        """Raises KernelUnavailable where the kernels cannot run, or not on this shape."""
        super().__init__(layout, num_query_heads, scale)
        if layout.dtype not in DTYPES:
            raise KernelUnavailable(f"the kernels do not read {layout.dtype}")
        is_interpreted = load_triton(layout.device)
        # Late: importing a kernel imports triton, which a CPU engine must do without.
        from engine.attention.triton import block_copy, decode, kv_write, prefill

        self._block_copy, self._kv_write = block_copy, kv_write
        self._decode, self._prefill = decode, prefill
        self._geometry = Geometry.of(
            layout,
            num_query_heads,
            scale,
            tiles or TileSizes.fitting(layout),
            dot_f32=is_interpreted and layout.dtype == torch.bfloat16,
        )
        shape = (
            layout.num_layers,
            layout.num_blocks,
            layout.num_kv_heads,
            layout.block_size,
            layout.head_dim,
        )
        self._keys = torch.zeros(shape, dtype=layout.dtype, device=layout.device)
        self._values = torch.zeros_like(self._keys)
        self._work: StepWork | None = None
        self._buffers: DecodeBuffers | None = None
        self._slots: torch.Tensor | None = None

    def prepare(self, batch: AttentionBatch) -> None:
        self._work = plan_work(batch, self._geometry, self.layout.device)
        self._buffers = self._decode.DecodeBuffers(self._work, self._geometry)
        self._slots = batch.slots.to(self.layout.device)

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        assert self._slots is not None, "prepare comes first"
        if not len(self._slots):
            return
        with torch.cuda.device_of(self._keys):
            self._kv_write.write_kv(
                contiguous_tokens(key),
                contiguous_tokens(value),
                self._pool(layer),
                self._slots,
                self._geometry,
            )

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        work, buffers = self._work, self._buffers
        assert work is not None, "prepare comes first"
        assert buffers is not None
        query = contiguous_tokens(query)
        output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        with torch.cuda.device_of(self._keys):
            if len(work.splits):
                self._decode.decode(query, output, self._pool(layer), work, buffers, self._geometry)
            if len(work.prefill_tiles):
                self._prefill.prefill(query, output, self._pool(layer), work, self._geometry)
        return output

    def copy_blocks(self, copies: Sequence[tuple[int, int]]) -> None:
        if copies:
            with torch.cuda.device_of(self._keys):
                self._block_copy.copy_blocks((self._keys, self._values), copies)

    def gather(self, layer: int, block_ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = torch.tensor(block_ids, dtype=torch.int64, device=self.layout.device)
        keys, values = (
            # [blocks, num_kv_heads, block_size, head_dim] -> tokens first
            pool.index_select(0, blocks).transpose(1, 2).flatten(0, 1)
            for pool in self._pool(layer)
        )
        return keys, values

    def _pool(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._keys[layer], self._values[layer]


def contiguous_tokens(rows: torch.Tensor) -> torch.Tensor:
    """`rows` itself, [num_tokens, heads, head_dim], if the heads of a token lie side by side, as
    in a slice of a fused projection; else a copy."""
    is_dense = rows.stride()[1:] == (rows.shape[2], 1)
    return rows if is_dense else rows.contiguous()


def load_triton(device: torch.device) -> bool:
    """Import triton and say whether it interprets.

    Raises KernelUnavailable without triton, on the CPU without the interpreter, and on CUDA where
    there is none.
    """
    if device.type == "cuda" and not torch.cuda.is_available():
        raise KernelUnavailable("the Triton kernels need a CUDA device, and torch finds none")
    if device.type not in {"cuda", "cpu"}:
        raise KernelUnavailable(f"the Triton kernels do not run on {device.type}")
    if device.type == "cpu" and not _interpreter_is_wanted():
        raise KernelUnavailable(
            "the Triton kernels run on CUDA; on the CPU only under TRITON_INTERPRET=1, for tests"
        )
    try:
        from engine.attention.triton import tiles
    except ImportError as missing:
        raise KernelUnavailable(
            "the package triton is not installed (it comes with torch's CUDA wheels)"
        ) from missing
    # Decided when the kernels were decorated; the environment may have changed since.
    is_interpreted = type(tiles.attend_split).__name__ == "InterpretedFunction"
    if device.type == "cpu" and not is_interpreted:
        raise KernelUnavailable("TRITON_INTERPRET was set after triton had been imported")
    return is_interpreted


def _interpreter_is_wanted() -> bool:
    """Read without importing triton."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in {"1", "on", "true", "y", "yes"}
