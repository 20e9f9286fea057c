"""Originals from the artifact bucket as local files, for the parser children to open by path."""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
import weakref
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import DocumentTooLarge, Gone, NotFound, ObjectChanged, ParserFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.artifacts import Artifacts
    from core.domain.access import Principal
    from core.domain.documents import ActiveVersion
    from core.ports.object_store import ObjectStore

_MAX_FILES = 16
_MAX_FILES_BYTES = 512 * 1024 * 1024


@dataclass
class _File:
    """`num_users` keep it from being dropped."""

    path: Path
    size_bytes: int
    num_users: int = 0


class LocalOriginals:
    """A private folder with the files used last; safe in threads."""

    def __init__(self, store: ObjectStore, artifacts: Artifacts, *, max_file_bytes: int) -> None:
        self._store = store
        self._artifacts = artifacts
        self._max_file_bytes = max_file_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[str, str], _File] = OrderedDict()
        self._folder: Path | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None

    def folder(self) -> Path:
        """Made when it is first asked for; gone after `close`."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="pincite-pages-"))
                self._finalizer = weakref.finalize(
                    self, shutil.rmtree, self._folder, ignore_errors=True
                )
            return self._folder

    @contextmanager
    def opened(self, principal: Principal, version: ActiveVersion) -> Iterator[Path]:
        """The version's bytes as a local file, kept for the next time.

        Raises Gone when they are no longer kept; ParserFailure when the file is too large now.
        """
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
                self._drop_oldest()

    def drop_unused(self) -> None:
        """Forget the files that nobody is using."""
        with self._lock:
            for name, file in list(self._files.items()):
                if file.num_users == 0:
                    file.path.unlink(missing_ok=True)
                    del self._files[name]

    def close(self) -> None:
        """Remove the folder. It is made again when it is needed again."""
        with self._lock:
            self._files.clear()
            finalizer, self._finalizer, self._folder = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def _fetch(self, principal: Principal, version: ActiveVersion, name: tuple[str, str]) -> _File:
        key = self._artifacts.original_key(principal, version.sha256)
        stat = self._store.head(principal, self._artifacts.bucket, key)
        if stat is None:
            raise Gone("the bytes of this version are no longer kept")
        path = self.folder() / f"{uuid.uuid4().hex}.pdf"
        try:
            self._store.download(principal, stat, path, max_bytes=self._max_file_bytes)
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

    def _drop_oldest(self) -> None:
        """Forget the files used longest ago, over the limits; the lock is held."""
        total = sum(file.size_bytes for file in self._files.values())
        for name, file in list(self._files.items()):
            if len(self._files) <= _MAX_FILES and total <= _MAX_FILES_BYTES:
                return
            if file.num_users == 0:
                file.path.unlink(missing_ok=True)
                total -= file.size_bytes
                del self._files[name]
