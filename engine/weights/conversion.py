"""GGUF -> a directory in Hugging Face layout, once per file and dtype.

Reading a GGUF vocabulary and dequantizing take seconds; the converted directory opens in
milliseconds, since safetensors are memory-mapped. It appears in one step (written aside, renamed),
so whoever is killed half way leaves nothing that looks complete, and a lock lets one of several
processes convert while the others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file

from engine.errors import ModelLoadError
from engine.weights.dtypes import dtype_name
from engine.weights.gguf_config import end_token_ids, read_config, token_ids
from engine.weights.gguf_file import GGUFFile
from engine.weights.gguf_tensors import hf_names, read_tensor
from engine.weights.gguf_tokenizer import build_tokenizer, tokenizer_config
from engine.weights.manifest import (
    CONVERTER_VERSION,
    MANIFEST_NAME,
    Manifest,
    SourceStamp,
    file_sha256,
    is_intact,
    read_manifest,
)
from engine.weights.safetensors_files import INDEX_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_SHARD_BYTES = 1 << 30  # also what conversion needs in memory
_SCRATCH_PREFIX = ".converting-"
_LOCK_NAME = ".lock"


def convert_once(source: Path, dtype: torch.dtype, conversion_dir: Path | None = None) -> Path:
    """The converted directory of a GGUF file; converts when there is none or it is stale.

    Args:
        source: the GGUF file.
        dtype: of the converted weights.
        conversion_dir: where converted directories live; None: beside the file, as
            `<file>.converted/<dtype>`.

    A directory is stale when the source has another size, or another modification time and other
    bytes; when a file of it is missing or has the wrong size; or when an older converter wrote it.

    Raises ModelLoadError: unreadable, unsupported, or nowhere to write.
    """
    source = source.absolute()
    name = dtype_name(dtype)
    parent = _conversions_of(source, conversion_dir)
    target = parent / name
    if _is_fresh(target, source):
        return target
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent):
            if not _is_fresh(target, source) and not _was_only_touched(target, source):
                _sweep(parent)
                _convert(source, dtype, target)
    except OSError as error:
        raise ModelLoadError(f"cannot convert {source.name} into {parent}: {error}") from error
    return target


def _conversions_of(source: Path, conversion_dir: Path | None) -> Path:
    if conversion_dir is None:
        return source.with_name(f"{source.name}.converted")
    # A directory of the caller's may hold conversions of several files with one name.
    path_hash = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    return conversion_dir.absolute() / f"{source.name}-{path_hash}.converted"


def _is_fresh(target: Path, source: Path) -> bool:
    manifest = read_manifest(target)
    if manifest is None:
        return False
    try:
        found = source.stat()
    except OSError as error:
        raise ModelLoadError(f"there is no file {source}") from error
    stamp = manifest.source
    is_same_source = (stamp.size_bytes, stamp.mtime_ns) == (found.st_size, found.st_mtime_ns)
    return is_same_source and manifest.dtype == target.name and is_intact(manifest, target)


def _was_only_touched(target: Path, source: Path) -> bool:
    """A copied or re-fetched source has another time but the same bytes: note the new time."""
    manifest = read_manifest(target)
    found = source.stat()
    if manifest is None or manifest.source.size_bytes != found.st_size:
        return False
    if not is_intact(manifest, target) or file_sha256(source) != manifest.source.sha256:
        return False
    scratch = target / f"{MANIFEST_NAME}.new"
    stamped = replace(manifest, source=replace(manifest.source, mtime_ns=found.st_mtime_ns))
    stamped.write(scratch)
    scratch.replace(target / MANIFEST_NAME)
    return True


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Only one process converts below `parent`; the lock ends with the process that holds it."""
    with (parent / _LOCK_NAME).open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sweep(parent: Path) -> None:
    """Remove what killed conversions left; ours is the only one running."""
    for left_over in parent.glob(f"{_SCRATCH_PREFIX}*"):
        shutil.rmtree(left_over, ignore_errors=True)


def _convert(source: Path, dtype: torch.dtype, target: Path) -> None:
    before = source.stat()
    file = GGUFFile(source)
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=target.parent))
    try:
        unpacked = scratch / "new"
        unpacked.mkdir()
        _write_texts(file, dtype, unpacked)
        _write_weights(file, dtype, unpacked)
        stamp = SourceStamp(source.name, before.st_size, before.st_mtime_ns, file_sha256(source))
        sizes = {path.name: path.stat().st_size for path in sorted(unpacked.iterdir())}
        Manifest(CONVERTER_VERSION, dtype_name(dtype), stamp, sizes).write(unpacked / MANIFEST_NAME)
        for path in (*unpacked.iterdir(), unpacked):
            _sync(path)
        if target.exists():
            target.rename(scratch / "old")
        unpacked.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_texts(file: GGUFFile, dtype: torch.dtype, directory: Path) -> None:
    config = read_config(file)
    context_length = config["max_position_embeddings"]
    generation = token_ids(file) | {"eos_token_id": end_token_ids(file)}
    build_tokenizer(file).save(str(directory / "tokenizer.json"), pretty=False)
    _write_json(directory / "config.json", config | {"torch_dtype": dtype_name(dtype)})
    _write_json(directory / "tokenizer_config.json", tokenizer_config(file, context_length))
    _write_json(directory / "generation_config.json", generation)


def _write_weights(file: GGUFFile, dtype: torch.dtype, directory: Path) -> None:
    config = read_config(file)
    shards = _plan_shards(file, dtype)
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        one = "model.safetensors"
        name = one if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        tensors = {
            ours: _as_dtype(torch.from_numpy(read_tensor(file, theirs, config)), dtype, ours)
            for ours, theirs in shard.items()
        }
        save_file(tensors, directory / name, metadata={"format": "pt"})
        # safetensors makes it readable by the owner alone, unlike every other file here.
        shutil.copymode(directory / "config.json", directory / name)
        weight_map.update(dict.fromkeys(tensors, name))
    if len(shards) > 1:
        _write_json(directory / INDEX_NAME, {"metadata": {}, "weight_map": weight_map})


def _plan_shards(file: GGUFFile, dtype: torch.dtype) -> list[dict[str, str]]:
    """Names by shard, so that no more than one shard is in memory at a time."""
    shards: list[dict[str, str]] = [{}]
    room = _MAX_SHARD_BYTES
    for ours, theirs in hf_names(file).items():
        size_bytes = dtype.itemsize
        for rows in file.shape(theirs):
            size_bytes *= rows
        if size_bytes > room and shards[-1]:
            shards.append({})
            room = _MAX_SHARD_BYTES
        shards[-1][ours] = theirs
        room -= size_bytes
    return shards


def _as_dtype(values: torch.Tensor, dtype: torch.dtype, name: str) -> torch.Tensor:
    converted = values.to(dtype).contiguous()
    if not bool(torch.isfinite(converted).all()):
        raise ModelLoadError(f"{name} has values that are not finite as {dtype_name(dtype)}")
    return converted


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
