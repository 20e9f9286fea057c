"""Object keys made from what people call their files: `<collection>/<path>`."""

from __future__ import annotations

import unicodedata

from core.errors import InvalidInput, NotPermitted

_MAX_KEY_BYTES = 900
# Control and format characters (NUL, zero width, direction overrides) and lone surrogates: they
# make a name look like another one, or cannot be stored.
_DROPPED = frozenset({"Cc", "Cf", "Cs"})


def object_key(collection: str, filename: str) -> str:
    """The key of an upload, NFC-normalised.

    `collection` may have subfolders (`plant-a/manuals`); of `filename` the last path segment
    counts. A name is never used as a path on disk.
    Raises InvalidInput for what would climb, be empty or be too long.
    """
    name = filename.replace("\\", "/").rpartition("/")[2]
    parts = [_clean(part) for part in (*collection.replace("\\", "/").split("/"), name)]
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(
            "a collection and a file name are needed, without empty parts, '.' or '..'"
        )
    key = "/".join(parts)
    if len(key.encode()) > _MAX_KEY_BYTES:
        raise InvalidInput(f"the name is longer than {_MAX_KEY_BYTES} bytes")
    return key


def require_collection(key: str, collections: frozenset[str] | None) -> None:
    """Raises NotPermitted when the caller may not see the key's collection."""
    collection = key.partition("/")[0]
    if collections is not None and collection not in collections:
        raise NotPermitted(f"this key may not use the collection '{collection}'")


def _clean(part: str) -> str:
    kept = "".join(letter for letter in part if unicodedata.category(letter) not in _DROPPED)
    return unicodedata.normalize("NFC", kept).strip()
