"""What a converted directory was made from: the file that says whether it may still be used."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST_NAME = "conversion.json"
# Raised whenever the converter would write something else for the same file.
CONVERTER_VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceStamp:
    """What identifies the source without reading it. `sha256` is what it had when it was read."""

    name: str
    size_bytes: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`files` are the sizes of everything else in the directory, by name."""

    converter_version: int
    dtype: str
    source: SourceStamp
    files: dict[str, int]

    @property
    def fingerprint(self) -> str:
        """The same for the same source, dtype and converter, wherever the files lie."""
        parts = f"{self.converter_version}:{self.dtype}:{self.source.sha256}"
        return hashlib.sha256(parts.encode()).hexdigest()

    def write(self, path: Path) -> None:
        content = asdict(self) | {"fingerprint": self.fingerprint}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest | None:
    """The directory's manifest; None when it is absent, unreadable or of another version."""
    try:
        content = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        manifest = Manifest(
            converter_version=content["converter_version"],
            dtype=content["dtype"],
            source=SourceStamp(**content["source"]),
            files=dict(content["files"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return manifest if manifest.converter_version == CONVERTER_VERSION else None


def is_intact(manifest: Manifest, directory: Path) -> bool:
    """Whether every file that was written is there with its size; contents are not read."""
    for name, size_bytes in manifest.files.items():
        try:
            if (directory / name).stat().st_size != size_bytes:
                return False
        except OSError:
            return False
    return True


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
