"""An object store in memory, with the faults a real one can have."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from core.domain.access import Principal
from core.domain.documents import ObjectStat
from core.errors import (
    DocumentTooLarge,
    InvalidInput,
    NotFound,
    NotPermitted,
    ObjectChanged,
    ObjectStoreUnavailable,
)
from core.ports.object_store import Downloaded, ObjectStream

_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class StoredObject:
    body: bytes
    stat: ObjectStat
    metadata: dict[str, str] = field(default_factory=dict)


class FakeObjectStore:
    """`fail_list_after`: a listing raises after so many keys. `is_down`: every call raises."""

    def __init__(
        self, tenant_ids: Mapping[str, str], artifacts_bucket: str = "pincite-artifacts"
    ) -> None:
        self.artifacts_bucket = artifacts_bucket
        self.is_down = False
        self.fail_list_after: int | None = None
        self.truncate_downloads = False
        self._tenant_ids = dict(tenant_ids)
        self._buckets: dict[str, dict[str, StoredObject]] = {
            bucket: {} for bucket in (*tenant_ids, artifacts_bucket)
        }
        self._num_writes = 0

    def head(self, principal: Principal, bucket: str, key: str) -> ObjectStat | None:
        self._check(principal, bucket, key)
        found = self._buckets[bucket].get(key)
        return found.stat if found else None

    @contextmanager
    def open(
        self,
        principal: Principal,
        bucket: str,
        key: str,
        *,
        byte_range: tuple[int, int] | None = None,
        if_match: str | None = None,
    ) -> Iterator[ObjectStream]:
        self._check(principal, bucket, key)
        found = self._find(bucket, key, if_match)
        body = found.body
        if byte_range is not None:
            if byte_range[0] >= len(body):
                raise InvalidInput("the range is outside the object")
            body = body[byte_range[0] : byte_range[1] + 1]
        yield ObjectStream(found.stat, len(found.body), iter([body] if body else []))

    def read(self, principal: Principal, bucket: str, key: str) -> bytes:
        self._check(principal, bucket, key)
        return self._find(bucket, key, None).body

    def download(
        self, principal: Principal, stat: ObjectStat, path: Path, *, max_bytes: int
    ) -> Downloaded:
        self._check(principal, stat.bucket, stat.key)
        found = self._find(stat.bucket, stat.key, stat.etag)
        if len(found.body) > max_bytes:
            raise DocumentTooLarge("the file is too large")
        if self.truncate_downloads:
            raise ObjectStoreUnavailable("the object store closed the connection early")
        path.write_bytes(found.body)
        return Downloaded(found.stat, hashlib.sha256(found.body).hexdigest())

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
        self._check(principal, bucket, key)
        source = BytesIO(body) if isinstance(body, bytes) else body
        data = b"".join(iter(lambda: source.read(1 << 16), b""))
        self._num_writes += 1
        stat = ObjectStat(
            bucket,
            key,
            hashlib.md5(data, usedforsecurity=False).hexdigest(),
            len(data),
            _START + timedelta(seconds=self._num_writes),
            content_type,
        )
        self._buckets[bucket][key] = StoredObject(data, stat, dict(metadata or {}))
        return stat

    def copy(self, principal: Principal, source: ObjectStat, bucket: str, key: str) -> None:
        self._check(principal, source.bucket, source.key)
        found = self._find(source.bucket, source.key, source.etag)
        self.put(principal, bucket, key, found.body, content_type=found.stat.content_type)

    def delete(self, principal: Principal, bucket: str, key: str) -> None:
        self._check(principal, bucket, key)
        self._buckets[bucket].pop(key, None)

    def delete_prefix(self, principal: Principal, bucket: str, prefix: str) -> int:
        keys = [stat.key for stat in self.list(principal, bucket, prefix)]
        for key in keys:
            self._buckets[bucket].pop(key)
        return len(keys)

    def list(self, principal: Principal, bucket: str, prefix: str = "") -> Iterator[ObjectStat]:
        self._check(principal, bucket, prefix)
        if bucket not in self._buckets:
            raise ObjectStoreUnavailable("there is no such bucket")
        keys = sorted(key for key in self._buckets[bucket] if key.startswith(prefix))
        for position, key in enumerate(keys):
            if self.fail_list_after is not None and position >= self.fail_list_after:
                raise ObjectStoreUnavailable("the listing broke off")
            yield self._buckets[bucket][key].stat

    def ensure_bucket(self, bucket: str) -> None:
        self._buckets.setdefault(bucket, {})

    def keys(self, bucket: str) -> tuple[str, ...]:
        """What lies in a bucket, whatever the tenant: for assertions."""
        return tuple(sorted(self._buckets[bucket]))

    def _find(self, bucket: str, key: str, if_match: str | None) -> StoredObject:
        found = self._buckets[bucket].get(key)
        if found is None:
            raise NotFound("there is no such object", key=key)
        if if_match is not None and found.stat.etag != if_match:
            raise ObjectChanged("the object was replaced meanwhile", key=key)
        return found

    def _check(self, principal: Principal, bucket: str, key: str) -> None:
        is_artifact = bucket == self.artifacts_bucket
        owner = key.partition("/")[0] if is_artifact else self._tenant_ids.get(bucket)
        if owner != principal.tenant_id:
            raise NotPermitted("that bucket is not this tenant's")
        if self.is_down:
            raise ObjectStoreUnavailable("the object store does not answer")
