"""Request bodies as streams: nothing is spooled to disk or held whole in memory.

The route runs in a worker thread and reads; the event loop feeds. A raw body is the file itself; of
a multipart form the first part with a file name is.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import AsyncIterator
from email.message import Message
from io import RawIOBase

import anyio.from_thread
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from core.errors import DocumentTooLarge, InvalidInput

_MAX_FIELD_BYTES = 10_000


class HashedBody(RawIOBase):
    """A readable over an asynchronous stream of bytes; for worker threads only.

    Raises DocumentTooLarge while reading beyond `max_bytes`, InvalidInput when the client leaves.
    """

    def __init__(self, pieces: AsyncIterator[bytes], max_bytes: int) -> None:
        self._pieces = pieces
        self._max_bytes = max_bytes
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

    def read(self, size: int = -1) -> bytes:
        while not self._is_finished and (size < 0 or len(self._buffer) < size):
            self._fill()
        taken = bytes(self._buffer) if size < 0 else bytes(self._buffer[:size])
        del self._buffer[: len(taken)]
        return taken

    def _fill(self) -> None:
        try:
            piece = anyio.from_thread.run(self._next)
        except ClientDisconnect as error:
            raise InvalidInput("the upload was broken off") from error
        if piece is None:
            self._is_finished = True
            return
        self.size_bytes += len(piece)
        if self.size_bytes > self._max_bytes:
            raise DocumentTooLarge(
                f"the file is larger than {self._max_bytes} bytes",
                hint="PINCITE_API__MAX_UPLOAD_BYTES",
            )
        self._digest.update(piece)
        self._buffer += piece

    async def _next(self) -> bytes | None:
        async for piece in self._pieces:
            if piece:
                return piece
        return None


class MultipartFile:
    """The first file of a multipart form, read as it arrives; fields before it are kept."""

    def __init__(self, request: Request, boundary: bytes) -> None:
        self.filename = ""
        self.content_type: str | None = None
        self.fields: dict[str, str] = {}
        self._stream = request.stream()
        self._pieces: deque[bytes] = deque()
        self._header_name = b""
        self._header_value = b""
        self._headers = Message()
        self._field = bytearray()
        self._state = "fields"  # fields -> file -> done
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
            },
        )

    async def find(self) -> None:
        """Read up to the file's first bytes. Raises InvalidInput when there is no file."""
        while self._state == "fields":
            if not await self._feed():
                raise InvalidInput("the form has no file", hint="send the file as field 'file'")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's bytes; reads the form to its end."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if not await self._feed():
                break
        if self._state != "done":
            raise InvalidInput("the form ends in the middle of the file")

    async def _feed(self) -> bool:
        async for data in self._stream:
            if data:
                self._parser.write(data)
                return True
        return False

    def _on_part_begin(self) -> None:
        self._headers = Message()
        self._field.clear()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        name = self._header_name.decode("latin-1").lower()
        self._headers[name] = self._header_value.decode("utf-8", "replace")
        self._header_name = self._header_value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        filename = options.get(b"filename")
        if filename is not None and self._state == "fields":
            self._state = "file"
            self.filename = filename.decode("utf-8", "replace")
            self.content_type = self._headers.get("content-type")
        self._field_name = options.get(b"name", b"").decode("utf-8", "replace")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._state == "file":
            self._pieces.append(data[start:end])
        elif self._state == "fields":
            self._field += data[start:end]
            if len(self._field) > _MAX_FIELD_BYTES:
                raise InvalidInput("a field of the form is too long")

    def _on_part_end(self) -> None:
        if self._state == "file":
            self._state = "done"
        elif self._state == "fields":
            self.fields[self._field_name] = self._field.decode("utf-8", "replace")
