"""`PageRenderer` by parser children: no document is ever opened in the calling process.

Children are the same program that parses (`python -m ingest.parsing.child`), started as a process
and never imported. A few are kept, since starting one takes longer than drawing a page.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from core.adapters.page_originals import LocalOriginals
from core.artifacts import content_prefix
from core.child_process import ChildEnded, ChildLimits, ChildProcess, ChildTimedOut
from core.errors import (
    InvalidInput,
    NotFound,
    Overloaded,
    ParserCrashed,
    ParserFailure,
    TimedOut,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.artifacts import Artifacts
    from core.domain.access import Principal
    from core.domain.documents import ActiveVersion
    from core.domain.pages import Page, Rect
    from core.ports.object_store import ObjectStore
    from core.settings import Settings

_COMMAND = (sys.executable, "-P", "-m", "ingest.parsing.child")
_LIMIT_NAMES = (
    *("max_file_bytes", "max_pages", "max_page_chars"),
    *("max_render_pixels", "memory_bytes", "page_timeout_s"),
)
_START_TIMEOUT_S = 30.0
_MAX_LINE_BYTES = 4 * 1024 * 1024
_MAX_WIDTH_PX = 4_000
_MAX_CHILDREN = 2
_MAX_WAIT_S = 15.0
_IDLE_S = 60.0  # after which children are ended, and deleted documents' bytes gone from here


class SubprocessPageRenderer:
    """Implements `core.ports.page_renderer.PageRenderer`; safe in threads.

    At most `max_children` pages are drawn at a time; a caller that waits longer than `max_wait_s`
    for its turn gets Overloaded.
    """

    def __init__(
        self,
        settings: Settings,
        object_store: ObjectStore,
        artifacts: Artifacts,
        *,
        max_children: int = _MAX_CHILDREN,
        max_wait_s: float = _MAX_WAIT_S,
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self._settings = settings.parser
        self._store = object_store
        self._artifacts = artifacts
        self._max_wait_s = max_wait_s
        self._command = tuple(command)
        self._turns = threading.BoundedSemaphore(max_children)
        self.num_busy = 0  # children at work now
        self._lock = threading.Lock()
        self._idle: list[tuple[ChildProcess, int]] = []  # with how many requests it has served
        self._files = LocalOriginals(
            object_store, artifacts, max_file_bytes=settings.parser.max_file_bytes
        )
        self._used_at = 0.0
        self._timer: threading.Timer | None = None

    def page_png(
        self, principal: Principal, version: ActiveVersion, page: int, *, width_px: int
    ) -> bytes:
        """The page as displayed (cropped, rotated), `width_px` wide, as PNG; cached."""
        if not 1 <= width_px <= _MAX_WIDTH_PX:
            raise InvalidInput(f"the width must be 1 to {_MAX_WIDTH_PX} pixels")
        _check_page(version, page)
        prefix = content_prefix(principal.tenant_id, version.sha256)
        key = f"{prefix}pages/{page}@{width_px}.png"
        try:
            return self._store.read(principal, self._artifacts.bucket, key)
        except NotFound:
            picture = self._draw(principal, version, page, width_px)
        self._store.put(principal, self._artifacts.bucket, key, picture, content_type="image/png")
        return picture

    def word_rects(
        self, principal: Principal, version: ActiveVersion, page: int, start: int, end: int
    ) -> tuple[Rect, ...]:
        """Rectangles, one a printed line, that cover exactly the words of `text[start:end]`.

        Where the file reads differently today than when it was stored, those of the whole printed
        lines, which were stored with the text; none for a page that is not stored. Raises
        InvalidInput for a range outside the page's text.
        """
        _check_page(version, page)
        stored = self._artifacts.read_pages(
            principal, version.sha256, version.parser_fingerprint, [page]
        ).get(page)
        if stored is None:
            return ()
        if not 0 <= start < end <= len(stored.text):
            raise InvalidInput(
                "that range lies outside the page's text",
                hint=f"it has {len(stored.text)} characters",
            )
        with self._files.opened(principal, version) as path, self._child() as child:
            answer = self._ask(
                child, {"do": "words", "path": str(path), "page": page, "start": start, "end": end}
            )
        if answer.get("text") != stored.text[start:end]:
            return stored.rects(start, end)
        return _rects(answer.get("rects"), stored, start, end)

    def close(self) -> None:
        """End the children and drop the local files. It starts again when it is used again."""
        with self._lock:
            idle, self._idle = self._idle, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for child, _ in idle:
            child.close()
        self._files.close()

    def drop_idle(self) -> None:
        """End children and forget files that nobody is using. Runs by itself when all is quiet."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child, _ in idle:
            child.close()
        self._files.drop_unused()

    def _watch_idleness(self) -> None:
        """See to it that `drop_idle` runs after `_IDLE_S` without a request; the lock is held."""
        self._used_at = time.monotonic()
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_IDLE_S, self._when_idle)
        self._timer.daemon = True
        self._timer.start()

    def _when_idle(self) -> None:
        with self._lock:
            self._timer = None
            if time.monotonic() - self._used_at < _IDLE_S:
                self._start_timer()
                return
        self.drop_idle()

    def _draw(
        self, principal: Principal, version: ActiveVersion, page: int, width_px: int
    ) -> bytes:
        with self._files.opened(principal, version) as path, self._child() as child:
            into = path.parent / f"{uuid.uuid4().hex}.png"
            request = {"do": "render", "path": str(path), "page": page, "width_px": width_px}
            try:
                self._ask(child, {**request, "into": str(into)})
                return into.read_bytes()
            finally:
                into.unlink(missing_ok=True)

    def _ask(self, child: ChildProcess, request: dict[str, Any]) -> dict[str, Any]:
        """The content of the child's answer. Raises TimedOut, ParserFailure, NotFound."""
        try:
            child.send(request)
            answer = child.receive(self._settings.page_timeout_s)
        except ChildTimedOut as error:
            raise TimedOut("the page took too long to draw") from error
        except ChildEnded as error:
            raise ParserCrashed("the parser crashed on this page", reason=str(error)) from error
        done = answer.get("done")
        if isinstance(done, dict):
            return done
        error_data = answer.get("error")
        message = error_data.get("message") if isinstance(error_data, dict) else None
        raise ParserFailure(str(message or "the parser gave no answer"))

    @contextmanager
    def _child(self) -> Iterator[ChildProcess]:
        """A child for one request. It is kept when the request went well."""
        if not self._turns.acquire(timeout=self._max_wait_s):
            raise Overloaded("too many pages are being drawn", retry_after_s=2.0)
        try:
            with self._lock:
                self.num_busy += 1
                child, num_served = self._idle.pop() if self._idle else (None, 0)
            if child is None or not child.is_alive:
                child, num_served = self._start(), 0
            try:
                yield child
            except BaseException:
                child.close()
                raise
            self._keep(child, num_served + 1)
        finally:
            with self._lock:
                self.num_busy -= 1
                self._watch_idleness()
            self._turns.release()

    def _keep(self, child: ChildProcess, num_served: int) -> None:
        worn = (
            num_served >= self._settings.recycle_documents
            or child.rss_bytes() > self._settings.recycle_rss_bytes
        )
        if worn:
            child.close()
            return
        with self._lock:
            self._idle.append((child, num_served))

    def _start(self) -> ChildProcess:
        limits = {name: getattr(self._settings, name) for name in _LIMIT_NAMES}
        child = ChildProcess(
            self._command,
            ChildLimits(self._settings.memory_bytes, _MAX_LINE_BYTES),
            folder=self._files.folder(),
        )
        try:
            # Threads of a server come and go: the child must not die with the one that started it.
            child.send({"limits": limits, "parent": None})
            child.receive(_START_TIMEOUT_S)
        except ChildEnded as error:
            raise ParserFailure("the parser process did not start", reason=str(error)) from error
        return child


def _check_page(version: ActiveVersion, page: int) -> None:
    if not 1 <= page <= version.page_count:
        raise NotFound(
            f"this document has no page {page}", hint=f"its pages are 1 to {version.page_count}"
        )


def _rects(found: object, stored: Page, start: int, end: int) -> tuple[Rect, ...]:
    """The child's rectangles; the stored ones of the lines when they cannot be rectangles."""
    try:
        rects = [tuple(float(value) for value in rect) for rect in found]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return stored.rects(start, end)
    if not all(len(r) == 4 and 0 <= r[0] <= r[2] <= 1 and 0 <= r[1] <= r[3] <= 1 for r in rects):
        return stored.rects(start, end)
    return tuple((r[0], r[1], r[2], r[3]) for r in rects)
