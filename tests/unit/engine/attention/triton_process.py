"""The Triton backend as tests see it: the contract, carried out by `triton_worker` in Triton's
interpreter in another process."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from engine.attention.base import AttentionBackend, AttentionBatch, KVLayout
from engine.attention.triton.geometry import TileSizes
from engine.errors import KernelUnavailable
from tests.unit.engine.attention.triton_worker import Tensors, receive, send

ROOT = Path(__file__).resolve().parents[4]
# A few tokens then fill several tiles and several splits: the interpreter takes ~10 ms a KV tile.
TINY_TILES = TileSizes(kv=16, split=16, prefill_rows=16)


class InterpretedTriton(AttentionBackend):
    """A backend that lives in the worker."""

    def __init__(
        self, process: TritonProcess, number: int, layout: KVLayout, heads: int, scale: float
    ) -> None:
        super().__init__(layout, heads, scale)
        self._process = process
        self._number = number

    def prepare(self, batch: AttentionBatch) -> None:
        self._call(
            "prepare",
            {"slots": batch.slots},
            query_starts=list(batch.query_starts),
            context_lens=list(batch.context_lens),
            block_tables=[list(table) for table in batch.block_tables],
        )

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        self._call("write", {"key": key, "value": value}, layer=layer)

    def write_fused(self, layer: int, fused: torch.Tensor) -> None:
        """Keys and values as slices of one tensor, [num_tokens, 2 * num_kv_heads, head_dim]."""
        self._call("write_fused", {"fused": fused}, layer=layer)

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        return self._call("attend", {"query": query}, layer=layer)["result"]

    def copy_blocks(self, copies: Sequence[tuple[int, int]]) -> None:
        self._call("copy_blocks", {}, copies=list(copies))

    def gather(self, layer: int, block_ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        result = self._call("gather", {}, layer=layer, block_ids=list(block_ids))
        return result["keys"], result["values"]

    def _call(self, method: str, tensors: Tensors, **arguments: Any) -> Tensors:
        return self._process.call({"method": method, "backend": self._number, **arguments}, tensors)


class TritonProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._num_backends = 0

    def create(
        self,
        layout: KVLayout,
        num_query_heads: int,
        scale: float,
        tiles: TileSizes | None = TINY_TILES,
    ) -> InterpretedTriton:
        fields = {name: getattr(layout, name) for name in layout.__slots__}
        self.call(
            {
                "method": "create",
                "layout": {**fields, "dtype": str(layout.dtype), "device": str(layout.device)},
                "num_query_heads": num_query_heads,
                "scale": scale,
                "tiles": dataclasses.asdict(tiles) if tiles else None,
            },
            {},
        )
        number = self._num_backends
        self._num_backends += 1
        return InterpretedTriton(self, number, layout, num_query_heads, scale)

    def call(self, message: dict[str, Any], tensors: Tensors) -> Tensors:
        """Raises what the worker raised: KernelUnavailable as such, all else as RuntimeError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, message, tensors)
        answer, result = receive(self._process.stdout)
        if answer["error"] == KernelUnavailable.__name__:
            raise KernelUnavailable(answer["message"])
        if answer["error"]:
            raise RuntimeError(f"{answer['error']}: {answer['message']}")
        return result


@contextmanager
def triton_process() -> Iterator[TritonProcess]:
    """The worker, up; it ends with the context."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.engine.attention.triton_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
    ) as process:
        try:
            yield TritonProcess(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)
