"""What the machine allows a decoder, measured now: memory bandwidth, matrix rate, and the floors
that follow from them (docs: decode reads all weights and the KV in sight; prefill multiplies)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.attention.base import KVLayout
    from engine.loading import EngineParts

_READ_BYTES = 512 << 20  # far more than any cache holds
_MATRIX = 1024


@dataclass(frozen=True, slots=True)
class Floors:
    """The least time of a step, in seconds, at this machine's rates.

    read_bytes_per_s: of a dot product. flops_per_s: of a square matrix product in the model's
    dtype. Both with the engine's own number of threads, best of a few.
    """

    weight_bytes: int
    kv_bytes_per_token: float
    num_query_values: int  # query heads * head_dim * layers
    read_bytes_per_s: float
    flops_per_s: float
    bytes_per_weight: int

    def decode_s(self, num_seqs: int, context_len: float) -> float:
        """One step: all weights once, and each sequence's KV."""
        num_bytes = self.weight_bytes + num_seqs * context_len * self.kv_bytes_per_token
        return num_bytes / self.read_bytes_per_s

    def prefill_s(self, num_tokens: int) -> float:
        """Two operations per weight and token, and causal attention."""
        linear = 2 * self.weight_bytes / self.bytes_per_weight * num_tokens
        attention = 4 * self.num_query_values * num_tokens**2 / 2
        return (linear + attention) / self.flops_per_s


def measure_floors(parts: EngineParts) -> Floors:
    config = parts.model_config
    layout: KVLayout = parts.runner.attention.layout
    return Floors(
        weight_bytes=parts.runner.decoder.weights.num_bytes,
        kv_bytes_per_token=layout.bytes_per_block / layout.block_size,
        num_query_values=config.num_query_heads * config.head_dim * config.num_layers,
        read_bytes_per_s=_read_bytes_per_s(parts.device),
        flops_per_s=_flops_per_s(parts.device, parts.dtype),
        bytes_per_weight=parts.dtype.itemsize,
    )


def _read_bytes_per_s(device: torch.device) -> float:
    left, right = torch.ones(2, _READ_BYTES // 8, dtype=torch.float32, device=device)
    return _READ_BYTES / _best_s(lambda: torch.dot(left, right), device)


def _flops_per_s(device: torch.device, dtype: torch.dtype) -> float:
    left, right = torch.randn(2, _MATRIX, _MATRIX, device=device).to(dtype)
    return 2 * _MATRIX**3 / _best_s(lambda: left @ right, device)


def _best_s(work: Callable[[], torch.Tensor], device: torch.device, repeat: int = 15) -> float:
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return best
