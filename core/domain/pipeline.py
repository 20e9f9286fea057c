"""What a generation was made with: the part of its identity that is not the file."""

from __future__ import annotations

from dataclasses import astuple, dataclass

# Raised by hand when the payload or the vectors of a point change their meaning.
INDEX_SCHEMA = 2

_SEPARATOR = "."


@dataclass(frozen=True, slots=True)
class PipelineFingerprint:
    """Each part is short and holds no dot. Two generations of the same version differ in it.

    `embedder` stands for the *configured* embedder, not for its weights: documents are accepted
    while the model server is down. The weights' own fingerprint is in the index's manifest, which
    refuses others, and in the names of stored vectors.
    """

    parser: str
    chunker: str
    embedder: str
    analyser: str
    schema: str

    def __str__(self) -> str:
        return _SEPARATOR.join(astuple(self))

    @classmethod
    def parse(cls, text: str) -> PipelineFingerprint:
        """The inverse of `str`. Raises ValueError."""
        parts = text.split(_SEPARATOR)
        if len(parts) != 5 or not all(parts):
            raise ValueError(f"not a pipeline fingerprint: {text!r}")
        return cls(*parts)
