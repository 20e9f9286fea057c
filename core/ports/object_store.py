"""Objects by bucket and key, S3-shaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from core.domain.access import Principal
    from core.domain.documents import ObjectStat


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """An open object; `total_bytes` is the whole object's size even for a range."""

    stat: ObjectStat
    total_bytes: int
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Downloaded:
    stat: ObjectStat
    sha256: str


class ObjectStore(Protocol):
    """Every method takes the Principal and raises NotPermitted when the tenant does not own the
    bucket (documents) or the key's first path segment (artifacts); ObjectStoreUnavailable when the
    server does not answer."""

    def head(self, principal: Principal, bucket: str, key: str) -> ObjectStat | None:
        """None when there is no such object."""

    def open(
        self,
        principal: Principal,
        bucket: str,
        key: str,
        *,
        byte_range: tuple[int, int] | None = None,
        if_match: str | None = None,
    ) -> AbstractContextManager[ObjectStream]:
        """Stream an object. `byte_range` is inclusive. Raises NotFound, ObjectChanged."""

    def read(self, principal: Principal, bucket: str, key: str) -> bytes:
        """A whole small object (artifacts). Raises NotFound."""

    def download(
        self,
        principal: Principal,
        stat: ObjectStat,
        path: Path,
        *,
        max_bytes: int,
    ) -> Downloaded:
        """The object of exactly that etag into a local file, hashed on the way.

        Raises NotFound, ObjectChanged (other etag, or truncated), DocumentTooLarge.
        """

    def put(
        self,
        principal: Principal,
        bucket: str,
        key: str,
        body: bytes | BinaryIO,
        *,
        content_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectStat:
        """Write an object whole; multipart when it is large. `body` is read once, in pieces."""

    def copy(self, principal: Principal, source: ObjectStat, bucket: str, key: str) -> None:
        """Server-side copy of exactly that etag. Raises NotFound, ObjectChanged."""

    def delete(self, principal: Principal, bucket: str, key: str) -> None:
        """Deleting what is not there is a success."""

    def delete_prefix(self, principal: Principal, bucket: str, prefix: str) -> int:
        """Delete all objects under a prefix; returns how many."""

    def list(self, principal: Principal, bucket: str, prefix: str = "") -> Iterator[ObjectStat]:
        """All objects, each once, in the order of the store (S3: by key; SeaweedFS: by path
        segment); raises mid-way rather than end early when a page fails."""

    def ensure_bucket(self, bucket: str) -> None:
        """Create the bucket unless it exists."""
