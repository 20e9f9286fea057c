"""The parent's side of the parser child: start it, hold it to its limits, survive its death.

A worker is a supervisor that never opens a document itself. Pages come one line at a time, so what
was read before a death is kept; the page it died on is tried once more in a fresh child (memory of
the pages before must not be held against it) and then given up, and the rest goes on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from core.child_process import (
    ChildEnded,
    ChildLimits,
    ChildProcess,
    ChildSaidNonsense,
    ChildTimedOut,
    ChildTooLarge,
)
from core.errors import (
    CorruptDocument,
    DocumentError,
    DocumentTooLarge,
    NeedsPassword,
    ParserCrashed,
    ParserFailure,
    ParserOutOfMemory,
    ParserTimedOut,
    UnsupportedDocument,
)
from ingest.parsing.base import ParsedRange, ParseLimits
from ingest.parsing.page_range import PageRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from core.domain.pages import Page
    from core.settings import ParserSettings

# Raised with every change of what the same file is read as.
PARSER_VERSION = "1"

_COMMAND = (sys.executable, "-P", "-m", "ingest.parsing.child")
_START_TIMEOUT_S = 30.0
_MAX_LINE_BYTES = 48 * 1024 * 1024
_RANGE_BASE_S = 60.0
_RANGE_PAGE_S = 5.0
_DOCUMENT_ERRORS: dict[str, type[DocumentError]] = {
    error.code: error
    for error in (NeedsPassword, CorruptDocument, UnsupportedDocument, DocumentTooLarge)
}


def parser_fingerprint(settings: ParserSettings) -> str:
    """Short and stable: equal for the same rules, library and caps, so that equal bytes are read
    once."""
    parts = (PARSER_VERSION, importlib.metadata.version("pymupdf"), settings.max_page_chars)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


class Parser:
    """Reads documents in a child process that it starts, kills and replaces as needed.

    For one caller at a time. `close` (or leaving the `with`) ends the child; so does the end of the
    thread that started it, if that is the main one (Linux), and the end of this process.
    """

    def __init__(self, settings: ParserSettings, *, command: Sequence[str] = _COMMAND) -> None:
        self._settings = settings
        self._limits = ParseLimits.of(settings)
        self._command = tuple(command)
        self._child: ChildProcess | None = None
        self._folder: Path | None = None
        self._num_documents = 0
        self.report: dict[str, str] = {}  # what the child could take from itself

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def child_pid(self) -> int | None:
        return self._child.pid if self._child else None

    def child_rss_bytes(self) -> int:
        return self._child.rss_bytes() if self._child else 0

    def parse(
        self, path: Path, first: int, last: int, on_page: Callable[[Page], None] | None = None
    ) -> ParsedRange:
        """Pages first..last (1-based, inclusive, as far as they exist), in order, none missing.

        `on_page` is called after each page; what it raises ends the child and comes through.
        Raises NeedsPassword, CorruptDocument, UnsupportedDocument or DocumentTooLarge for the file
        as a whole; ParserTimedOut, ParserCrashed or ParserOutOfMemory when it cannot be opened for
        that reason, or when no page of a whole document could be read for it.
        """
        work = PageRange(path.resolve(), first, last, on_page)
        work.ends_at = time.monotonic() + self._time_for(last - first + 1)
        try:
            while not work.is_done:
                self._attempt(work)
        except BaseException:
            self._drop_child()  # it may still be writing about this file
            raise
        assert work.facts is not None
        work.raise_if_nothing_was_read()
        self._recycle()
        # Part of the record: whether these pages were read without a way to the network.
        network = self.report.get("network", "unknown")
        facts = replace(work.facts, metadata={**work.facts.metadata, "parser_network": network})
        return ParsedRange(facts, tuple(work.pages), tuple(work.warnings))

    def close(self) -> None:
        """End the child, if any. The parser starts another when it is used again."""
        self._drop_child()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _time_for(self, num_pages: int) -> float:
        return min(self._settings.document_timeout_s, _RANGE_BASE_S + _RANGE_PAGE_S * num_pages)

    def _attempt(self, work: PageRange) -> None:
        """Go on with the range until it is done or the child dies."""
        is_fresh = self._child is None
        try:
            child = self._child or self._start()
            child.send(
                {"do": "parse", "path": str(work.path), "first": work.next, "last": work.last}
            )
            for message in self._messages(child, work):
                if _take(work, message, child, self._limits):
                    is_fresh = False
                work.announce()
        except ChildEnded as death:
            self._drop_child()
            work.blame(_cause_of(death), is_fresh=is_fresh)
            work.announce()

    def _messages(self, child: ChildProcess, work: PageRange) -> Iterator[dict[str, Any]]:
        """What the child says about the range, up to its end. Raises ChildEnded."""
        while True:
            left = work.ends_at - time.monotonic()
            if left <= 0:
                child.close()
                raise ChildTimedOut("the time for these pages is over")
            message = child.receive(min(self._limits.page_timeout_s, left))
            if "error" in message:
                error = message["error"]
                kind = _DOCUMENT_ERRORS.get(str(error.get("code")))
                if kind is not None and work.facts is None:
                    raise kind(str(error.get("message")), hint=error.get("hint"))
                child.close()
                if error.get("code") == ParserOutOfMemory.code:
                    raise ChildTooLarge("it ran out of memory")
                raise ChildSaidNonsense(str(error.get("message")))
            yield message
            if "done" in message:
                return

    def _start(self) -> ChildProcess:
        """A new child that has said it is ready. Raises ChildEnded; ParserFailure when it says why
        it cannot start."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pincite-parser-"))
            self._folder.chmod(0o500)
        child = ChildProcess(
            self._command,
            ChildLimits(self._limits.memory_bytes, _MAX_LINE_BYTES),
            folder=self._folder,
        )
        # The kernel ties a child to the thread that started it, not to the process.
        in_main = threading.current_thread() is threading.main_thread()
        try:
            child.send(
                {"limits": self._limits.to_json(), "parent": os.getpid() if in_main else None}
            )
            answer = child.receive(_START_TIMEOUT_S)
        except ChildEnded as error:
            raise ParserFailure(
                "the parser process did not start",
                hint="run `python -m ingest.parsing.child` and see what it says",
                reason=str(error),
            ) from error
        self.report = {str(key): str(value) for key, value in answer.get("ready", {}).items()}
        self._child = child
        self._num_documents = 0
        return child

    def _recycle(self) -> None:
        """The library leaks now and then: a new child after many documents, or much memory."""
        self._num_documents += 1
        if (
            self._num_documents >= self._settings.recycle_documents
            or self.child_rss_bytes() > self._settings.recycle_rss_bytes
        ):
            self._drop_child()

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def _take(
    work: PageRange, message: dict[str, Any], child: ChildProcess, limits: ParseLimits
) -> bool:
    """`work.take`, and the end of a child that says what cannot be true."""
    try:
        return work.take(message, limits)
    except ValueError as error:
        child.close()
        raise ChildSaidNonsense(f"an impossible answer: {error}") from error


def _cause_of(death: ChildEnded) -> ParserFailure:
    """The typed error for how the child ended."""
    number = death.signal_number
    if isinstance(death, ChildTimedOut) or number == signal.SIGALRM:
        return ParserTimedOut("the parser took too long on a page and was stopped")
    if isinstance(death, ChildTooLarge):
        return ParserOutOfMemory("the parser needed more memory than it may have")
    if isinstance(death, ChildSaidNonsense):
        return ParserFailure("the parser failed on a page", reason=str(death))
    if number == signal.SIGKILL:  # not by us: the system's out-of-memory killer
        return ParserOutOfMemory("the parser was killed, most likely for its use of memory")
    name = signal.Signals(number).name if number else f"exit code {death.returncode}"
    return ParserCrashed(f"the parser crashed ({name})")
