"""Byte ranges of RFC 9110, one at a time."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException

# One range of at most 18 digits; sets of ranges are answered with the whole, as the RFC allows.
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})$")


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """The wanted bytes, first and last; None to send everything (also when not understood).

    Raises HTTPException 416 with the size when the range lies outside.
    """
    match = _RANGE.match((header or "").strip())
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":  # the last n bytes
        first, last = max(0, size_bytes - int(match[2])), size_bytes - 1
    else:
        first = int(match[1])
        last = min(int(match[2]) if match[2] else size_bytes - 1, size_bytes - 1)
        if match[2] and int(match[2]) < first:
            return None  # not a valid range: as if there were none
    if first > last:
        raise HTTPException(
            416,
            f"that range lies outside the file's {size_bytes} bytes",
            headers={"Content-Range": f"bytes */{size_bytes}"},
        )
    return first, last
