"""The first file of a multipart form, as a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from core.errors import InvalidInput
from query.http.uploads import too_large

_MAX_FIELD_BYTES = 10_000
_MAX_FIELDS = 20
_MAX_OVERHEAD_BYTES = 1_000_000  # boundaries, headers and fields around the file


class MultipartFile:
    """The first part that has a file name, read as it arrives; fields before it are kept.

    Args:
        stream: the request's body.
        boundary: from its content type.
        max_bytes: of the file; the form around it may add a little.

    Raises InvalidInput for what is no form, DocumentTooLarge for an endless one.
    """

    def __init__(self, stream: AsyncIterator[bytes], boundary: bytes, max_bytes: int) -> None:
        self.filename = ""
        self.content_type: str | None = None
        self.fields: dict[str, str] = {}
        self._stream = stream
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._pieces: deque[bytes] = deque()
        self._header_name = b""
        self._header_value = b""
        self._headers: dict[str, str] = {}
        self._field_name = ""
        self._field = bytearray()
        self._state = "fields"  # fields -> file -> done
        try:
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
        except FormParserError as error:
            raise InvalidInput("the form's boundary is not valid") from error

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
        data = b""
        while not data:
            found = await anext(self._stream, None)
            if found is None:
                return False
            data = found
        self._num_bytes += len(data)
        if self._num_bytes > self._max_bytes + _MAX_OVERHEAD_BYTES:
            raise too_large(self._max_bytes)
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise InvalidInput("the form is malformed") from error
        return True

    def _on_part_begin(self) -> None:
        self._headers = {}
        self._field.clear()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        # Bytes as they are: what they mean depends on the parameter.
        name = self._header_name.decode("latin-1").lower()
        self._headers[name] = self._header_value.decode("latin-1")
        self._header_name = self._header_value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        self._field_name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        if filename is not None and self._state == "fields":
            self._state = "file"
            self.filename = _unescaped(filename.decode("utf-8", "replace"))
            self.content_type = self._headers.get("content-type")

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
            if len(self.fields) > _MAX_FIELDS:
                raise InvalidInput("the form has too many fields")


def _unescaped(name: str) -> str:
    """Browsers write these three as percent escapes, and nothing else (HTML, form submission)."""
    return name.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
