"""The paged-KV inference engine and its own server.

Imports nothing of ours and knows nothing of documents, passages or citations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig
from engine.errors import EngineError
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from engine.llm import LLM

__all__ = ["LLM", "EngineConfig", "EngineError", "SamplingParams"]


def __getattr__(name: str) -> Any:
    """`LLM` brings torch, so it is imported when it is asked for."""
    if name == "LLM":
        from engine.llm import LLM

        return LLM
    raise AttributeError(f"module 'engine' has no attribute '{name}'")
