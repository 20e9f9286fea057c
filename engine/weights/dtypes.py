"""Which number format the weights are kept in, by what the machine computes fast."""

from __future__ import annotations

import torch

from engine.errors import ModelLoadError

_BY_NAME = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def dtype_name(dtype: torch.dtype) -> str:
    """`bfloat16` for `torch.bfloat16`: the word in settings, directories and config.json.

    Raises ModelLoadError for a format that weights are not kept in.
    """
    for name, known in _BY_NAME.items():
        if known == dtype:
            return name
    raise ModelLoadError(f"weights are not kept as {dtype}; use one of {', '.join(_BY_NAME)}")


def resolve_device(device: str) -> str:
    """`auto` becomes cuda where there is a GPU, else cpu."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def resolve_dtype(name: str, device: str) -> torch.dtype:
    """The dtype that a setting means on a device; `auto` is `default_dtype`.

    Raises ModelLoadError for an unknown name.
    """
    if name == "auto":
        return default_dtype(device)
    if name not in _BY_NAME:
        raise ModelLoadError(f"unknown dtype '{name}'; use auto, {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the processor multiplies it natively, else float32.

    On a CPU without AMX or AVX512_BF16 bfloat16 is emulated and several times slower than float32.
    """
    if resolve_device(device).startswith("cuda"):
        return torch.bfloat16
    return torch.bfloat16 if _cpu_multiplies_bfloat16() else torch.float32


def _cpu_multiplies_bfloat16() -> bool:
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))
