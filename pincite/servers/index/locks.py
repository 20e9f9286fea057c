"""The two locks of the index server: one owner per data directory, and drain before close."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pincite.servers.index.errors import IndexOwned


class OwnerLock:
    """An advisory lock on a data directory, held for the life of the process.

    The kernel releases it when the process dies, however it dies, so a stale file never blocks
    a start. The process id written into it is only for the message.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock now. Raises IndexOwned when another process has it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise IndexOwned(
                f"the index in {self._path.parent} is already owned by process {holder}",
                hint="one index server per data directory: stop the other one, or give this "
                "one its own --data-dir",
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode("ascii"))
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; calling it twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class UseGate:
    """Counts who is using a resource, so that closing it can wait for them.

    Readers and the writer pass together; only `close` is exclusive.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0
        self._closed = False

    def enter(self) -> bool:
        """Start using the resource; False when it is closed or about to be."""
        with self._changed:
            if self._closed:
                return False
            self._users += 1
            return True

    def leave(self) -> None:
        """Stop using the resource (once per successful `enter`)."""
        with self._changed:
            self._users -= 1
            self._changed.notify_all()

    @contextmanager
    def hold(self) -> Iterator[bool]:
        """Use the resource for a block; yields False when it is already closed."""
        entered = self.enter()
        try:
            yield entered
        finally:
            if entered:
                self.leave()

    def close(self) -> bool:
        """Let nobody else in and wait for those inside. False when it was closed before."""
        with self._changed:
            if self._closed:
                return False
            self._closed = True
            self._changed.wait_for(lambda: self._users == 0)
            return True
