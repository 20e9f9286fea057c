"""What tells one directory of weights from another, without reading all of it.

Answers of a gate and cached blocks belong to exact weights. Hashing gigabytes at each start would
cost seconds, so a directory that we did not convert is sampled.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.weights.manifest import is_intact, read_manifest
from engine.weights.safetensors_files import find_weight_files, read_header

if TYPE_CHECKING:
    from pathlib import Path

_TEXT_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
_NUM_SAMPLES = 64
_SAMPLE_BYTES = 4096


def directory_fingerprint(directory: Path, dtype: str) -> str:
    """sha256 in hex. From the manifest of a converted directory; else over the text files and, of
    each weight file, its name, size, header and 64 evenly spread pieces of 4 KiB.

    Training changes weights everywhere, so another checkpoint of the same shape differs in the
    pieces; copying the directory changes nothing.

    Raises ModelLoadError when the weights are missing or are not safetensors.
    """
    manifest = read_manifest(directory)
    if manifest is not None and is_intact(manifest, directory):
        return manifest.fingerprint
    digest = hashlib.sha256(dtype.encode())
    for name in _TEXT_FILES:
        path = directory / name
        if path.is_file():
            digest.update(f"{name}:{path.stat().st_size}:".encode())
            digest.update(path.read_bytes())
    for path in find_weight_files(directory):
        size_bytes = path.stat().st_size
        digest.update(f"{path.name}:{size_bytes}:".encode())
        digest.update(read_header(path))
        with path.open("rb") as stream:
            for number in range(_NUM_SAMPLES):
                stream.seek(max(0, size_bytes - _SAMPLE_BYTES) * number // (_NUM_SAMPLES - 1))
                digest.update(stream.read(_SAMPLE_BYTES))
    return digest.hexdigest()
