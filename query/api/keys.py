"""Object keys made from what people call their files: `<collection>/<path>`."""

from __future__ import annotations

import re
import unicodedata

from core.errors import InvalidInput, NotPermitted

_MAX_KEY_BYTES = 900
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def object_key(collection: str, filename: str) -> str:
    """The key of an upload, NFC-normalised.

    `collection` may have subfolders (`plant-a/manuals`). Control, zero-width and direction
    characters are dropped; a name is never used as a path on disk.
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
    if collections is not None and key.partition("/")[0] not in collections:
        raise NotPermitted(f"this key may not use the collection '{key.partition('/')[0]}'")


def _clean(part: str) -> str:
    return _FORBIDDEN.sub("", unicodedata.normalize("NFC", part)).strip()
