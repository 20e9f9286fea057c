"""`PageRenderer` by parser children: no document is ever opened in the calling process.

Children are the same program that parses (`python -m ingest.parsing.child`), started as a process
and never imported. A few are kept, since starting one takes longer than drawing a page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.artifacts import content_prefix
from core.child_process import ChildEnded, ChildLimits, ChildProcess, ChildTimedOut
from core.errors import (
    DocumentTooLarge,
    Gone,
    InvalidInput,
    NotFound,
    ObjectChanged,
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
_MAX_FILES = 16
_MAX_FILES_BYTES = 512 * 1024 * 1024


@dataclass
class _File:
    """An original on local disk. `num_users` keep it from being dropped."""

    path: Path
    size_bytes: int
    num_users: int = 0


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
        self._files: OrderedDict[tuple[str, str], _File] = OrderedDict()
        self._folder: Path | None = None
        self._used_at = 0.0
        self._timer: threading.Timer | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None

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
        with self._original(principal, version) as path, self._child() as child:
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
            self._files.clear()
            timer, self._timer = self._timer, None
            finalizer, self._finalizer, self._folder = self._finalizer, None, None
        if timer is not None:
            timer.cancel()
        for child, _ in idle:
            child.close()
        if finalizer is not None:
            finalizer()

    def drop_idle(self) -> None:
        """End children and forget files that nobody is using. Runs by itself when all is quiet."""
        with self._lock:
            idle, self._idle = self._idle, []
            for name, file in list(self._files.items()):
                if file.num_users == 0:
                    file.path.unlink(missing_ok=True)
                    del self._files[name]
        for child, _ in idle:
            child.close()

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
        with self._original(principal, version) as path, self._child() as child:
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
            folder=self._private_folder(),
        )
        try:
            # Threads of a server come and go: the child must not die with the one that started it.
            child.send({"limits": limits, "parent": None})
            child.receive(_START_TIMEOUT_S)
        except ChildEnded as error:
            raise ParserFailure("the parser process did not start", reason=str(error)) from error
        return child

    def _private_folder(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="pincite-pages-"))
                self._finalizer = weakref.finalize(
                    self, shutil.rmtree, self._folder, ignore_errors=True
                )
            return self._folder

    @contextmanager
    def _original(self, principal: Principal, version: ActiveVersion) -> Iterator[Path]:
        """The version's bytes as a local file, kept for the next page. Raises Gone."""
        name = (principal.tenant_id, version.sha256)
        with self._lock:
            file = self._files.get(name)
            if file is not None:
                file.num_users += 1
        if file is None:
            file = self._fetch(principal, version, name)
        try:
            yield file.path
        finally:
            with self._lock:
                file.num_users -= 1
                if name in self._files:
                    self._files.move_to_end(name)
                self._drop_files()
                self._watch_idleness()

    def _fetch(self, principal: Principal, version: ActiveVersion, name: tuple[str, str]) -> _File:
        folder = self._private_folder()
        key = self._artifacts.original_key(principal, version.sha256)
        stat = self._store.head(principal, self._artifacts.bucket, key)
        if stat is None:
            raise Gone("the bytes of this version are no longer kept")
        path = folder / f"{uuid.uuid4().hex}.pdf"
        try:
            self._store.download(principal, stat, path, max_bytes=self._settings.max_file_bytes)
        except (NotFound, ObjectChanged) as error:
            raise Gone("the bytes of this version are no longer kept") from error
        except DocumentTooLarge as error:
            raise ParserFailure("the file is larger than is read now") from error
        with self._lock:
            found = self._files.setdefault(name, _File(path, stat.size_bytes))
            found.num_users += 1
        if found.path != path:  # another thread was faster
            path.unlink(missing_ok=True)
        return found

    def _drop_files(self) -> None:
        """Forget the files used longest ago, over the limits; the lock is held."""
        total = sum(file.size_bytes for file in self._files.values())
        for name, file in list(self._files.items()):
            if len(self._files) <= _MAX_FILES and total <= _MAX_FILES_BYTES:
                return
            if file.num_users == 0:
                file.path.unlink(missing_ok=True)
                total -= file.size_bytes
                del self._files[name]


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
