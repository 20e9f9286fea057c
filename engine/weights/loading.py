"""open_checkpoint: weights, configuration and fingerprint of a model, wherever it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from engine.errors import ModelLoadError
from engine.weights.conversion import convert_once
from engine.weights.dtypes import dtype_name
from engine.weights.fingerprint import directory_fingerprint
from engine.weights.safetensors_files import find_weight_files, read_json

if TYPE_CHECKING:
    from pathlib import Path

    import torch

_GGUF = ".gguf"


class Checkpoint:
    """A model's tensors by Hugging Face name, memory-mapped.

    config: the content of config.json.
    directory: Hugging Face layout, with tokenizer.json.
    fingerprint: sha256 in hex; the same for the same weights and dtype.
    """

    def __init__(self, directory: Path, dtype: torch.dtype) -> None:
        self.directory = directory
        self.dtype = dtype
        self.config = _read_config(directory)
        self.fingerprint = directory_fingerprint(directory, dtype_name(dtype))
        self._files: dict[str, Any] = {}
        for path in find_weight_files(directory):
            try:
                file: Any = safe_open(path, framework="pt", device="cpu")
            except (SafetensorError, OSError) as error:
                raise ModelLoadError(f"{path.name} is not a safetensors file: {error}") from error
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name in self._files:
                    raise ModelLoadError(f"{name} is in two files of {directory}")
                self._files[name] = file

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def tensor(self, name: str) -> torch.Tensor:
        """The tensor on the CPU, in the checkpoint's dtype. Do not write to it: it may be a view of
        the file. Raises ModelLoadError when there is none of that name."""
        if name not in self._files:
            raise ModelLoadError(f"the weights have no tensor {name}")
        try:
            tensor: torch.Tensor = self._files[name].get_tensor(name)
        except SafetensorError as error:
            raise ModelLoadError(f"{name} cannot be read: {error}") from error
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor


def open_checkpoint(
    model: Path, dtype: torch.dtype, conversion_dir: Path | None = None
) -> Checkpoint:
    """Open a model: a directory in Hugging Face layout, a GGUF file, or a directory with one.

    Args:
        model: the directory or file.
        dtype: of the tensors that come out.
        conversion_dir: where a GGUF file is converted to; None: beside it.

    Raises ModelLoadError: missing, pickled, remote code asked for, or not supported.
    """
    model = model.absolute()  # not resolved: a link's own name says what it is
    if model.is_file():
        if model.suffix.lower() != _GGUF:
            raise ModelLoadError(f"{model} is neither a model directory nor a {_GGUF} file")
        return Checkpoint(convert_once(model, dtype, conversion_dir), dtype)
    if not model.is_dir():
        raise ModelLoadError(f"there is no model {model}")
    if not (model / "config.json").is_file():
        packed = [path for path in sorted(model.iterdir()) if path.suffix.lower() == _GGUF]
        if len(packed) == 1:
            return Checkpoint(convert_once(packed[0], dtype, conversion_dir), dtype)
        if packed:
            names = ", ".join(path.name for path in packed)
            raise ModelLoadError(f"{model} has several {_GGUF} files, name one: {names}")
    return Checkpoint(model, dtype)


def _read_config(directory: Path) -> dict[str, Any]:
    config = read_json(directory / "config.json")
    if "auto_map" in config:
        raise ModelLoadError(
            f"{directory / 'config.json'} asks for code that comes with the model (auto_map), "
            "which is never run"
        )
    return config
