"""The bytes of a version: fetched as announced, told to the catalog, kept under their hash."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import DocumentTooLarge, InternalError, ObjectChanged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.domain.documents import ObjectStat
    from ingest.part_run import PartRun


@contextmanager
def local_file(run: PartRun) -> Iterator[Path]:
    """The part's bytes in a private folder that is gone afterwards.

    The first part reads the object itself, of exactly the announced etag; later ones read the copy
    that the first one kept, so that a replaced object cannot mix two files into one version.
    """
    deps = run.deps
    source = None if is_first_part(run) else _original(run)
    if source is None:
        source = _announced(run)
    max_bytes = deps.settings.parser.max_file_bytes
    if source.size_bytes > max_bytes:
        raise DocumentTooLarge(
            f"the file has {source.size_bytes} bytes, more than {max_bytes}",
            hint="raise parser.max_file_bytes",
        )
    with tempfile.TemporaryDirectory(prefix="pincite-", dir=deps.temp_dir) as folder:
        path = Path(folder) / "document"
        found = deps.object_store.download(run.principal, source, path, max_bytes=max_bytes)
        if run.part.sha256 not in {None, found.sha256}:
            raise InternalError("the store gave other bytes than were uploaded under this etag")
        run.part = replace(run.part, sha256=found.sha256)
        run.progress()
        yield path


def is_first_part(run: PartRun) -> bool:
    return run.part.first == 1


def _announced(run: PartRun) -> ObjectStat:
    part = run.part
    stat = run.deps.object_store.head(run.principal, part.bucket, part.key)
    if stat is None or stat.etag != part.etag:
        raise ObjectChanged("the object was replaced or deleted since it was announced")
    return stat


def _original(run: PartRun) -> ObjectStat | None:
    artifacts = run.deps.artifacts
    key = artifacts.original_key(run.principal, run.sha256)
    return run.deps.object_store.head(run.principal, artifacts.bucket, key)


def settle_content(run: PartRun, path: Path) -> bool:
    """Tell the catalog the hash (before any artifact exists, so that a purge sees it), then keep
    the bytes. False when nothing is left to do."""
    if is_first_part(run):
        same = run.deps.catalog.parts.set_content(run.part, sha256=run.sha256, etag=run.part.etag)
        if same is not None:
            return False
    kept = _original(run)
    if kept is None or kept.size_bytes != path.stat().st_size:
        artifacts = run.deps.artifacts
        with path.open("rb") as file:
            run.deps.object_store.put(
                run.principal,
                artifacts.bucket,
                artifacts.original_key(run.principal, run.sha256),
                file,
            )
    return True
