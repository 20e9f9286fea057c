"""The durable list of collections and aliases: one JSON file, replaced as a whole.

The rename of `registry.json` is the commit point of every create, delete, alias change and
metadata change. A shard directory that the file does not name is half-created or half-deleted,
and is removed at the next start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pincite.servers.index.errors import BrokenRegistry

FORMAT: Final = 1
FILE_NAME: Final = "registry.json"


@dataclass(frozen=True)
class CollectionRecord:
    """What is kept of one collection beside its shard.

    Attributes:
        name: as given by the client; never used as a path.
        directory: name of the shard's folder (random hex).
        created_at: RFC 3339 time.
        config: the CreateCollection body, without its metadata.
        metadata: the client's own JSON object (our manifest), or None.
    """

    name: str
    directory: str
    created_at: str
    config: dict[str, Any]
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class RegistryState:
    """One consistent view of all collections and aliases; replaced, never changed in place."""

    collections: Mapping[str, CollectionRecord] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str | None:
        """The collection that a name means (itself or the target of an alias), or None."""
        if name in self.collections:
            return name
        return self.aliases.get(name)


def load(path: Path) -> RegistryState:
    """Read the file at `path`; a missing file is an empty registry.

    Raises BrokenRegistry when the file is not one that this version wrote.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return RegistryState()
    try:
        return _parse(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenRegistry(
            f"cannot read the index registry {path}: {error}",
            hint="restore the file from a backup, or move the data directory away and rebuild "
            "the index from the catalog",
        ) from error


def _parse(content: Any) -> RegistryState:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']}, expected {FORMAT}")
    records = [CollectionRecord(**item) for item in content["collections"]]
    return RegistryState({record.name: record for record in records}, dict(content["aliases"]))


def save(path: Path, state: RegistryState) -> None:
    """Replace the file at `path` durably: temporary file, fsync, rename, fsync of the folder."""
    content = {
        "format": FORMAT,
        "collections": [asdict(record) for record in state.collections.values()],
        "aliases": dict(state.aliases),
    }
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(content, stream, ensure_ascii=False)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
