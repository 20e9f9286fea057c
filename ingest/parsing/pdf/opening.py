"""What kind of file this is by its own bytes, and why it does not open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import CorruptDocument, DocumentTooLarge, NeedsPassword, UnsupportedDocument

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.parsing.base import ParseLimits

_MAGIC = b"%PDF-"
_MAGIC_WITHIN = 1024
_SAMPLE_BYTES = 65_536


def check_is_pdf(path: Path, limits: ParseLimits) -> None:
    """Raises DocumentError for a file that is empty, too large or not a PDF, by its own bytes."""
    size = path.stat().st_size
    if size == 0:
        raise CorruptDocument("the file is empty (0 bytes)", hint="upload it again")
    if size > limits.max_file_bytes:
        raise DocumentTooLarge(
            f"the file has {size} bytes; the limit is {limits.max_file_bytes}",
            hint="split it, or raise PINCITE_PARSER__MAX_FILE_BYTES",
        )
    with path.open("rb") as file:
        head = file.read(_MAGIC_WITHIN)
    if _MAGIC not in head:
        raise UnsupportedDocument(
            "this file is not a PDF", hint="only PDF files can be read; convert it first"
        )


def why_it_does_not_open(path: Path) -> CorruptDocument | NeedsPassword:
    """Certificate encryption and damage fail alike; the bytes tell which."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
        file.seek(max(0, path.stat().st_size - _SAMPLE_BYTES))
        sample = head + file.read()
    if b"/Encrypt" in sample and (b"Adobe.PubSec" in sample or b"adbe.pkcs7" in sample):
        return NeedsPassword(
            "this PDF is encrypted for the holder of a certificate",
            hint="save a copy without encryption and add that",
        )
    message = "this PDF is damaged and cannot be opened"
    if b"/Encrypt" in sample:
        message = "this PDF is encrypted, and damaged or encrypted in an unknown way"
    return CorruptDocument(message, hint="open it in a viewer and save or print it to a new PDF")
