"""EngineConfig: every choice of one engine, a plain frozen dataclass."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path

Device = Literal["auto", "cpu", "cuda"]
DType = Literal["auto", "float32", "bfloat16", "float16"]


def default_threads() -> int:
    """Physical-ish cores less one: a descheduled OpenMP thread stalls every operation, so one core
    stays free for the server, the tokenizer and the neighbours."""
    return max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """
    model: a directory (Hugging Face layout: config.json, safetensors, tokenizer.json) or a GGUF
        file. Never a hub name: nothing is downloaded.
    dtype: of weights and KV. auto: bfloat16 on CUDA and on CPUs with bf16 instructions, else
        float32.
    attention_backend: auto picks by device; reference | cpu | triton.
    max_model_len: prompt + output tokens of one request; None: what the model allows.
    max_num_seqs: requests that run at once (the batch cap).
    max_num_batched_tokens: the token budget of one step, decodes and prefill chunks together.
    kv_cache_bytes: size of the block pool; None: from `num_blocks`, or a default by device.
    num_blocks: overrides the size, in blocks (tests); the null block comes on top.
    max_waiting: queued requests beyond which new ones are refused (QueueFull).
    deterministic: identical output whatever the batch, the chunk size and the cache (CPU: rows
        padded to what the self-test at load found to be invariant).
    trust of files: pickles, `auto_map` and remote code are refused, always.
    """

    model: Path
    served_model_name: str = ""
    device: Device = "auto"
    dtype: DType = "auto"
    attention_backend: Literal["auto", "reference", "cpu", "triton"] = "auto"
    threads: int = 0
    block_size: int = 16
    max_model_len: int | None = None
    max_num_seqs: int = 16
    max_num_batched_tokens: int = 256
    kv_cache_bytes: int | None = None
    num_blocks: int | None = None
    enable_prefix_caching: bool = True
    max_waiting: int = 64
    deterministic: bool = True
    conversion_dir: Path | None = None

    def __post_init__(self) -> None:
        for name in ("block_size", "max_num_seqs", "max_num_batched_tokens"):
            if getattr(self, name) < 1:
                raise InvalidRequest(f"{name} must be at least 1", param=name)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise InvalidRequest(
                "max_num_batched_tokens must be at least max_num_seqs: every running request "
                "decodes one token a step",
                param="max_num_batched_tokens",
            )

    @property
    def num_threads(self) -> int:
        return self.threads or default_threads()
