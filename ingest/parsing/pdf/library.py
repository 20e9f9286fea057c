"""The import of PyMuPDF, the only one, and the edge to what it raises."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from core.errors import PinciteError
from ingest.parsing.base import PageFault

# PyMuPDF 2 imports its layout models when it can: onnxruntime (which keeps an identity of the
# device under ~/.cache), four threads, 90 MB and most of the time that a child takes to start. We
# use none of it, and the library goes on without.
sys.modules["pymupdf.layout"] = None  # type: ignore[assignment]
sys.modules["pymupdf4llm"] = None  # type: ignore[assignment]
import pymupdf  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


@contextmanager
def library_calls() -> Iterator[None]:
    """The edge to the library: whatever it raises becomes PageFault, or MemoryError."""
    try:
        yield
    except (MemoryError, PageFault, PinciteError):
        raise
    except Exception as error:
        message = str(error).lower()
        if "alloc" in message or "out of memory" in message:
            raise MemoryError("the PDF library ran out of memory") from error
        raise PageFault(f"the PDF library failed ({type(error).__name__})") from error


__all__ = ["library_calls", "pymupdf"]
