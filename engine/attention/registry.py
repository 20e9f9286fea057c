"""Attention backends by name. Each is imported when it is asked for: Triton, above all, is never
imported on a machine that does not run it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from engine.errors import KernelUnavailable

if TYPE_CHECKING:
    from engine.attention.base import AttentionBackend, KVLayout

_BACKENDS = {
    "reference": ("engine.attention.reference", "ReferenceAttention"),
    "cpu": ("engine.attention.cpu", "CpuAttention"),
    "triton": ("engine.attention.triton.backend", "TritonAttention"),
}


def create_backend(
    name: str,
    layout: KVLayout,
    num_query_heads: int,
    scale: float,
    *,
    deterministic: bool = True,
) -> AttentionBackend:
    """The backend called `name`; "auto" is cpu on the CPU and triton on CUDA.

    deterministic: a row's result must not depend on the rows, sequences and padding that are
        computed with it. Only the CPU backend has a choice; the others always hold it.

    Raises KernelUnavailable for an unknown name, and when the backend cannot run on this device.
    """
    if name == "auto":
        name = "triton" if layout.device.type == "cuda" else "cpu"
    if name not in _BACKENDS:
        raise KernelUnavailable(
            f"no attention backend is called {name!r}; there are: auto, {', '.join(_BACKENDS)}"
        )
    if num_query_heads % layout.num_kv_heads:
        raise KernelUnavailable(
            f"{num_query_heads} query heads cannot share {layout.num_kv_heads} KV heads evenly"
        )
    module, class_name = _BACKENDS[name]
    try:
        backend = getattr(importlib.import_module(module), class_name)
    except ImportError as error:
        raise KernelUnavailable(f"attention backend {name} cannot be loaded: {error}") from error
    options = {"deterministic": deterministic} if name == "cpu" else {}
    created: AttentionBackend = backend(layout, num_query_heads, scale, **options)
    return created
