"""Memory that a library has freed goes back to the system. Knows nothing of models."""

from __future__ import annotations

import ctypes


def give_back_freed() -> bool:
    """Whether anything was given back; never where the C library is not glibc.

    glibc keeps what lies below a block in use, and activations of texts of all lengths leave such
    holes. Takes some milliseconds, in which other threads cannot allocate.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return False
    return bool(trim(0))
