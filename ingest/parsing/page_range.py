"""A range of pages on its way through children that may die."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.domain.pages import PageOutcome
from core.errors import CorruptDocument, DocumentTooLarge, ParserTimedOut
from ingest.parsing.base import failed_page
from ingest.parsing.wire import facts_from_wire, page_from_wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.domain.pages import DocumentFacts, Page
    from core.errors import ParserFailure
    from ingest.parsing.base import ParseLimits

_MAX_RANGE_CHARS = 16_000_000


@dataclass
class PageRange:
    """What is known of a range, what comes next, and what went wrong."""

    path: Path
    first: int
    last: int
    on_page: Callable[[Page], None] | None
    ends_at: float = 0.0
    facts: DocumentFacts | None = None
    pages: list[Page] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    num_chars: int = 0
    num_announced: int = 0
    causes: dict[int, ParserFailure] = field(default_factory=dict)
    num_failed_opens: int = 0

    @property
    def next(self) -> int:
        return self.first + len(self.pages)

    @property
    def is_done(self) -> bool:
        return self.facts is not None and self.next > min(self.last, self.facts.page_count)

    def take(self, message: dict[str, Any], limits: ParseLimits) -> bool:
        """Whether the message was a page. Raises ValueError for what cannot be true."""
        if "page" in message:
            if self.facts is None or self.is_done:
                raise ValueError("a page that nobody asked for")
            page = page_from_wire(
                message["page"], number=self.next, max_chars=limits.max_page_chars
            )
            self.num_chars += len(page.text)
            if self.num_chars > _MAX_RANGE_CHARS:
                raise DocumentTooLarge(f"more than {_MAX_RANGE_CHARS} characters in one part")
            self.pages.append(page)
            return True
        if "facts" in message and self.facts is None:
            self.facts = facts_from_wire(message["facts"], max_pages=limits.max_pages)
        elif "done" in message:
            if not self.is_done:
                raise ValueError("an end before the last page")
            self.warnings += [str(line)[:200] for line in message["done"].get("warnings", ())][:10]
        return False

    def blame(self, cause: ParserFailure, *, is_fresh: bool) -> None:
        """The child died while it was busy with the next page, or with opening the file.

        Raises the cause when the file cannot be opened in a fresh child either.
        """
        if self.facts is None:
            self.num_failed_opens += 1
            if is_fresh or self.num_failed_opens > 1:
                raise cause
            return
        if self.is_done:
            return  # it died after the last page: nothing is lost
        is_late = isinstance(cause, ParserTimedOut)
        if is_fresh or is_late:
            self.causes[self.next] = cause
            outcome = PageOutcome.TIMED_OUT if is_late else PageOutcome.FAILED
            self.pages.append(failed_page(self.next, outcome, cause.message))
        if time.monotonic() >= self.ends_at:
            while not self.is_done:
                self.causes[self.next] = cause
                reason = "the time for these pages was over before this one"
                self.pages.append(failed_page(self.next, PageOutcome.TIMED_OUT, reason))

    def raise_if_nothing_was_read(self) -> None:
        """Raises when it is a whole document of which every page was lost: the first cause, or
        CorruptDocument when the library could read none."""
        assert self.facts is not None
        is_whole = self.first == 1 and self.last >= self.facts.page_count
        lost = {PageOutcome.FAILED, PageOutcome.TIMED_OUT}
        if not is_whole or any(page.outcome not in lost for page in self.pages):
            return
        if self.causes:
            raise self.causes[min(self.causes)]
        raise CorruptDocument(
            "no page of this file can be read",
            hint="open it in a viewer and save or print it to a new PDF",
        )

    def announce(self) -> None:
        """Tell the caller of the pages it has not heard of."""
        while self.num_announced < len(self.pages):
            self.num_announced += 1
            if self.on_page is not None:
                self.on_page(self.pages[self.num_announced - 1])
