"""Which safetensors files of a directory hold which tensors, and the safe reading of their headers.

An index file comes with the weights and is not trusted: it may name only files beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import ModelLoadError

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
_PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"})
_MAX_HEADER_BYTES = 100 << 20  # the format's own limit
_MAX_JSON_BYTES = 64 << 20


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises ModelLoadError: absent, too large, malformed."""
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise ModelLoadError(f"{path.name} is too large")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path} is missing or is not JSON") from error
    if not isinstance(content, dict):
        raise ModelLoadError(f"{path} is not a JSON object")
    return content


def find_weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a model, in a stable order.

    `model.safetensors`, or the files of `model.safetensors.index.json`; nothing else is looked at.

    Raises ModelLoadError: no such weights, only pickled ones, an index that leaves the directory.
    """
    index = directory / INDEX_NAME
    if index.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ModelLoadError(f"{index.name} has no weight_map")
        return [_shard(directory, name) for name in sorted({str(n) for n in weight_map.values()})]
    single = directory / SINGLE_NAME
    if single.is_file():
        return [single]
    if directory.is_dir() and any(path.suffix in _PICKLED for path in directory.iterdir()):
        raise ModelLoadError(
            f"{directory} has only pickled weights, which can run code when loaded; "
            "use a copy of the model with .safetensors weights"
        )
    raise ModelLoadError(f"{directory} has neither {SINGLE_NAME} nor {INDEX_NAME}")


def read_header(path: Path) -> bytes:
    """The JSON header of a safetensors file, undecoded. Raises ModelLoadError when it has none."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER_BYTES:
                raise ModelLoadError(f"{path.name} is not a safetensors file")
            header = stream.read(length)
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read") from error
    if len(header) != length or not header.startswith(b"{"):
        raise ModelLoadError(f"{path.name} is not a safetensors file")
    return header


def _shard(directory: Path, name: str) -> Path:
    if Path(name).name != name or "\\" in name or not name.endswith(".safetensors"):
        raise ModelLoadError(f"{INDEX_NAME} names '{name}', which is not a file beside it")
    path = directory / name
    if not path.is_file():
        raise ModelLoadError(f"{INDEX_NAME} names {name}, which is missing")
    return path
