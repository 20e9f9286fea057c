"""Why a document without any text is not searchable: it is never `ready` with nothing in it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from core.domain.pages import PageOutcome
from core.errors import CorruptDocument, NeedsOcr, ParserTimedOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.domain.pages import Page
    from core.errors import PinciteError


def why_no_text(pages: Sequence[Page]) -> PinciteError:
    """The error for a document of which no page has text, by what its pages are.

    NeedsOcr when any has something to read; else ParserTimedOut (which is tried again) when some
    took too long; else CorruptDocument.
    """
    outcomes = Counter(page.outcome for page in pages)
    if outcomes[PageOutcome.IMAGE_ONLY] or outcomes[PageOutcome.GARBAGE]:
        return NeedsOcr(
            "the pages are pictures, or their fonts map to no characters",
            hint="run the file through an OCR program and put the result in its place",
            num_pages=len(pages),
        )
    if outcomes[PageOutcome.TIMED_OUT]:
        return ParserTimedOut("no page of the file could be read in time", num_pages=len(pages))
    if outcomes[PageOutcome.FAILED]:
        return CorruptDocument(
            "no page of the file can be read",
            hint="open it in a viewer and save or print it to a new PDF",
            num_pages=len(pages),
        )
    return CorruptDocument(
        "no page has any text or picture",
        hint="open it in a viewer; if text shows there, please report the file",
        num_pages=len(pages),
    )
