"""Request bodies as streams: nothing is spooled to disk or held whole in memory.

The route runs in a worker thread and reads; the event loop feeds. A raw body is the file itself; of
a multipart form the first part with a file name is (`query.http.multipart`).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from io import RawIOBase
from typing import TypeVar

import anyio
import anyio.from_thread
from starlette.requests import ClientDisconnect

from core.errors import DocumentTooLarge, InvalidInput, TimedOut

T = TypeVar("T")


def too_large(max_bytes: int) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"the file is larger than {max_bytes} bytes", hint="PINCITE_API__MAX_UPLOAD_BYTES"
    )


class HashedBody(RawIOBase):
    """A readable over an asynchronous stream of bytes; for worker threads only.

    Raises while reading: DocumentTooLarge beyond `max_bytes`, InvalidInput when the client leaves,
    TimedOut when nothing arrives for `idle_s`.
    """

    def __init__(self, pieces: AsyncIterator[bytes], *, max_bytes: int, idle_s: float) -> None:
        self._pieces = pieces
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._buffer = bytearray()
        self._digest = hashlib.sha256()
        self._is_finished = False
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        """Of what has been read so far."""
        return self._digest.hexdigest()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = -1 if size is None else size
        while not self._is_finished and (wanted < 0 or len(self._buffer) < wanted):
            self._fill()
        end = len(self._buffer) if wanted < 0 else wanted
        taken = bytes(self._buffer[:end])
        del self._buffer[:end]
        return taken

    def _fill(self) -> None:
        piece = wait_for(self._next, self._idle_s)
        if piece is None:
            self._is_finished = True
            return
        self.size_bytes += len(piece)
        if self.size_bytes > self._max_bytes:
            raise too_large(self._max_bytes)
        self._digest.update(piece)
        self._buffer += piece

    async def _next(self) -> bytes | None:
        return await anext(self._pieces, None)


def wait_for(step: Callable[[], Awaitable[T]], idle_s: float) -> T:
    """Wait in a worker thread for something that the event loop reads from the client.

    Raises InvalidInput when the client leaves, TimedOut after `idle_s`.
    """

    async def timed() -> T:
        with anyio.fail_after(idle_s):
            return await step()

    try:
        return anyio.from_thread.run(timed)
    except ClientDisconnect as error:
        raise InvalidInput("the upload was broken off") from error
    except TimeoutError as error:
        raise TimedOut(f"nothing of the upload arrived for {idle_s:.0f} s") from error
