"""What the parser child takes from itself before it opens a stranger's file.

Best effort where the system may say no (a container without user namespaces, macOS): what worked is
reported, and the parent's own limits hold in any case.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.parsing.base import ParseLimits

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_MAX_FILE_BYTES = 256 * 1024 * 1024  # pictures of pages
_MAX_OPEN_FILES = 64
_NICE = 10


def harden(limits: ParseLimits, *, parent_pid: int | None) -> dict[str, str]:
    """Limit this process; call before any other thread exists. Returns what is in force.

    With `parent_pid` the kernel kills this process when the thread that started it ends (Linux).
    """
    report = {
        "network": "isolated" if _leave_network() else "open",
        "memory": "limited" if _limit(resource.RLIMIT_AS, limits.memory_bytes) else "polled",
        "parent": "watched" if parent_pid and _die_with(parent_pid) else "by pipe",
    }
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    _limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    os.umask(0o077)
    os.nice(_NICE)
    return report


def set_alarm(seconds: float) -> None:
    """The last resort against a page that never ends when nobody is there to kill us: the kernel
    does it, since the default action of SIGALRM needs no Python. 0 turns it off."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit(kind: int, value: int) -> bool:
    _, hard = resource.getrlimit(kind)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (allowed, allowed))
    except (OSError, ValueError):
        return False
    return sys.platform.startswith("linux") or kind != resource.RLIMIT_AS


def _leave_network() -> bool:
    """Move into a network namespace of its own, which has no way out. Needs no privilege where
    user namespaces are allowed."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def _die_with(parent_pid: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return False
    if os.getppid() != parent_pid:  # it ended before we asked
        os._exit(1)
    return True
