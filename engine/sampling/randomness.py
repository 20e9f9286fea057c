"""One uniform number per (seed, position): a counter, not a state.

A generator that is advanced with every draw would make a request's tokens depend on who else drew
from it, and on how often the request was preempted. A keyed hash of the position has no state, is
the same on every device, and costs a microsecond.
"""

from __future__ import annotations

import hashlib

_WORD = 1 << 64
_MANTISSA_BITS = 53


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1), of 53 random bits, for the token at `position` of a request's output."""
    words = (seed % _WORD).to_bytes(8, "little") + (position % _WORD).to_bytes(8, "little")
    digest = hashlib.blake2b(words, digest_size=8, person=b"sampling").digest()
    return (int.from_bytes(digest, "little") >> (64 - _MANTISSA_BITS)) / (1 << _MANTISSA_BITS)
