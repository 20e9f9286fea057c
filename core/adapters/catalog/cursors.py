"""Cursors of listings: the last id of a page, opaque to callers."""

from __future__ import annotations

import base64
import binascii

from core.errors import InvalidInput
from core.ids import is_id

MAX_LIMIT = 1_000


def check_limit(limit: int) -> None:
    """Raises InvalidInput for a page size out of bounds."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}")


def to_cursor(last_id: str) -> str:
    return base64.urlsafe_b64encode(last_id.encode()).decode().rstrip("=")


def from_cursor(cursor: str, prefix: str) -> str:
    """The id in a cursor. Raises InvalidInput for what is no cursor over ids of that prefix."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("this cursor is not one of ours") from error
    if not is_id(raw, prefix):
        raise InvalidInput("this cursor is not one of ours")
    return raw
