"""A child process must not outlive its parent: a killed worker's child would go on holding
leases."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Called in the child. On Linux the kernel ends it with its parent; elsewhere `is_orphan` must
    be asked now and then. Exits at once when the parent is gone already."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if is_orphan(parent_pid):
        os._exit(1)


def is_orphan(parent_pid: int) -> bool:
    return os.getppid() != parent_pid
