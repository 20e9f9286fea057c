"""One GGUF file: its metadata as plain values, its tensors as float32 arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from gguf import GGUFReader, dequantize

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from gguf.gguf_reader import ReaderTensor

# What a damaged or hostile file makes the reader raise: it trusts lengths and offsets.
_READER_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    RecursionError,
    MemoryError,
    OSError,
)


class _BoundedReader(GGUFReader):
    """Past the end of the file the package's reader sees entries of no size, as many as the file
    claims to have: a claim of 2^60 would never end."""

    def _get(
        self,
        offset: int,
        dtype: npt.DTypeLike,
        count: int = 1,
        override_order: Literal["I", "S", "<"] | None = None,
    ) -> npt.NDArray[Any]:
        if int(offset) + int(count) * np.dtype(dtype).itemsize > len(self.data):
            raise ValueError("it is shorter than it says")
        return super()._get(offset, dtype, count, override_order)


class GGUFFile:
    """A parsed file. Its tensors stay on disk (memory-mapped) until they are asked for.

    Parsing reads the vocabulary entry by entry and takes seconds: do it once, then convert.

    Raises ModelLoadError when the file is not GGUF, is damaged, or has a type we cannot read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            reader = _BoundedReader(path)
            self.metadata: dict[str, Any] = {
                name: field.contents()
                for name, field in reader.fields.items()
                if not name.startswith("GGUF.")
            }
        except _READER_ERRORS as error:
            raise ModelLoadError(f"{path} is not a readable GGUF file: {error}") from error
        if reader.byte_order != "I":
            raise ModelLoadError(f"{path} was written for the other byte order")
        self._tensors: dict[str, ReaderTensor] = {tensor.name: tensor for tensor in reader.tensors}

    @property
    def architecture(self) -> str:
        return str(self.require("general.architecture", str))

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Rows first, as in torch; the file has them the other way round."""
        return tuple(int(size) for size in reversed(self._tensors[name].shape))

    def require(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """The metadata value of `key`. Raises ModelLoadError when it is absent or not a `kind`."""
        value = self.metadata.get(key)
        if not isinstance(value, kind):
            raise ModelLoadError(f"{self.path.name}: metadata '{key}' is missing or malformed")
        return value

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """As `require`, but the default when the key is absent."""
        return self.require(key, kind) if key in self.metadata else default

    def read(self, name: str) -> npt.NDArray[np.float32]:
        """The tensor, dequantized, rows first, float32, in writable memory.

        Raises ModelLoadError for a quantization that the gguf package cannot read.
        """
        tensor = self._tensors[name]
        try:
            values = dequantize(tensor.data, tensor.tensor_type)
        except (NotImplementedError, ValueError) as error:
            kind = tensor.tensor_type.name
            raise ModelLoadError(f"{name} is stored as {kind}, which cannot be read") from error
        # What was float32 already is a read-only view of the file; the rest is ours as it is.
        return np.require(values, np.float32, ["C", "W"]).reshape(self.shape(name))
