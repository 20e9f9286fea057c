"""`ObjectStore` on any S3 server, by boto3.

One client a process, made after a fork at its first use (a botocore client is safe in threads, its
connections are not safe across a fork). Signature version 4 and path addressing always: with a
custom endpoint boto3 otherwise presigns with version 2, and virtual hosts do not resolve.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from core.adapters.s3_errors import translated
from core.adapters.s3_upload import upload
from core.domain.documents import ObjectStat
from core.errors import (
    DocumentTooLarge,
    NotFound,
    NotPermitted,
    ObjectChanged,
    ObjectStoreUnavailable,
)
from core.ports.object_store import Downloaded, ObjectStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from mypy_boto3_s3.client import S3Client

    from core.domain.access import Principal
    from core.settings import ObjectsSettings

_READ_BYTES = 1024 * 1024
_DELETE_KEYS = 1000  # S3's limit for one request
_NUM_CONNECTIONS = 32
_NUM_TRIES = 3
_MADE_ALREADY = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")  # by somebody, since the HEAD


class S3ObjectStore:
    """See `core.ports.object_store.ObjectStore`.

    Args:
        settings: endpoint, credentials and time limits.
        tenant_ids: which tenant (id) owns each documents bucket. Keys of the artifacts bucket begin
            with the tenant's id instead.
    """

    def __init__(self, settings: ObjectsSettings, tenant_ids: Mapping[str, str]) -> None:
        self._settings = settings
        self._tenant_ids = dict(tenant_ids)
        self._lock = threading.Lock()
        self._client: S3Client | None = None
        self._client_pid = 0

    def head(self, principal: Principal, bucket: str, key: str) -> ObjectStat | None:
        self._check(principal, bucket, key)
        try:
            with translated(bucket, key):
                found = self._s3().head_object(Bucket=bucket, Key=key)
        except NotFound:
            return None
        return ObjectStat(
            bucket,
            key,
            found["ETag"].strip('"'),
            found["ContentLength"],
            found["LastModified"],
            found.get("ContentType"),
        )

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
        wanted: dict[str, Any] = {"Bucket": bucket, "Key": key}
        if byte_range is not None:
            wanted["Range"] = f"bytes={byte_range[0]}-{byte_range[1]}"
        if if_match is not None:
            wanted["IfMatch"] = f'"{if_match}"'
        with translated(bucket, key):
            found = self._s3().get_object(**wanted)
        length = found["ContentLength"]
        content_range = found.get("ContentRange", "")
        total = int(content_range.rpartition("/")[2]) if content_range else length
        stat = ObjectStat(
            bucket,
            key,
            found["ETag"].strip('"'),
            total,
            found["LastModified"],
            found.get("ContentType"),
        )
        body = found["Body"]
        try:
            yield ObjectStream(stat, total, _whole(body, length, bucket, key))
        finally:
            body.close()

    def read(self, principal: Principal, bucket: str, key: str) -> bytes:
        with self.open(principal, bucket, key) as stream:
            return b"".join(stream.chunks)

    def download(
        self, principal: Principal, stat: ObjectStat, path: Path, *, max_bytes: int
    ) -> Downloaded:
        digest = hashlib.sha256()
        num_bytes = 0
        with self.open(principal, stat.bucket, stat.key, if_match=stat.etag) as stream:
            _check_size(stream.total_bytes, max_bytes)
            if stream.stat.etag != stat.etag:  # a store that ignores If-Match
                raise ObjectChanged("the object was replaced meanwhile", key=stat.key)
            with path.open("wb") as file:
                for chunk in stream.chunks:
                    num_bytes += len(chunk)
                    _check_size(num_bytes, max_bytes)
                    digest.update(chunk)
                    file.write(chunk)
            return Downloaded(stream.stat, digest.hexdigest())

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
        wanted: dict[str, Any] = {"Bucket": bucket, "Key": key}
        if content_type is not None:
            wanted["ContentType"] = content_type
        if metadata:
            wanted["Metadata"] = dict(metadata)
        source: BinaryIO = BytesIO(body) if isinstance(body, bytes) else body
        return upload(self._s3(), wanted, source)

    def copy(self, principal: Principal, source: ObjectStat, bucket: str, key: str) -> None:
        self._check(principal, source.bucket, source.key)
        self._check(principal, bucket, key)
        with translated(source.bucket, source.key):
            self._s3().copy_object(
                Bucket=bucket,
                Key=key,
                CopySource={"Bucket": source.bucket, "Key": source.key},
                CopySourceIfMatch=f'"{source.etag}"',
            )

    def delete(self, principal: Principal, bucket: str, key: str) -> None:
        self._check(principal, bucket, key)
        with translated(bucket, key):
            self._s3().delete_object(Bucket=bucket, Key=key)

    def delete_prefix(self, principal: Principal, bucket: str, prefix: str) -> int:
        num_deleted = 0
        keys: list[str] = []
        for stat in self.list(principal, bucket, prefix):
            keys.append(stat.key)
            if len(keys) == _DELETE_KEYS:
                self._delete_keys(bucket, keys)
                num_deleted += len(keys)
                keys = []
        if keys:
            self._delete_keys(bucket, keys)
        return num_deleted + len(keys)

    def list(self, principal: Principal, bucket: str, prefix: str = "") -> Iterator[ObjectStat]:
        self._check(principal, bucket, prefix)
        token: str | None = None
        while True:
            wanted: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
            if token is not None:
                wanted["ContinuationToken"] = token
            with translated(bucket, prefix):
                page = self._s3().list_objects_v2(**wanted)
            for entry in page.get("Contents", []):
                yield ObjectStat(
                    bucket,
                    entry["Key"],
                    entry["ETag"].strip('"'),
                    entry["Size"],
                    entry["LastModified"],
                )
            if not page["IsTruncated"]:
                return
            token = page["NextContinuationToken"]

    def ensure_bucket(self, bucket: str) -> None:
        try:
            with translated(bucket, ""):
                self._s3().head_bucket(Bucket=bucket)
        except NotFound:
            with translated(
                bucket, "", tolerated=("BucketAlreadyOwnedByYou", "BucketAlreadyExists")
            ):
                self._s3().create_bucket(Bucket=bucket)

    def _check(self, principal: Principal, bucket: str, key: str) -> None:
        if bucket == self._settings.artifacts_bucket:
            owner: str | None = key.partition("/")[0]
        else:
            owner = self._tenant_ids.get(bucket)
        if not owner or owner != principal.tenant_id:
            raise NotPermitted(f"bucket '{bucket}' is not this tenant's", bucket=bucket)

    def _s3(self) -> S3Client:
        if self._client is None or self._client_pid != os.getpid():
            with self._lock:
                if self._client is None or self._client_pid != os.getpid():
                    self._client = _new_client(self._settings)
                    self._client_pid = os.getpid()
        return self._client

    def _delete_keys(self, bucket: str, keys: Sequence[str]) -> None:
        with translated(bucket, keys[0]):
            answer = self._s3().delete_objects(
                Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
        if answer.get("Errors"):
            first = answer["Errors"][0]
            raise ObjectStoreUnavailable(
                f"{len(answer['Errors'])} objects could not be deleted: {first.get('Code')}",
                bucket=bucket,
            )


def _new_client(settings: ObjectsSettings) -> S3Client:
    # A session of its own: boto3's default session is shared and not safe to use from threads.
    return boto3.session.Session().client(
        "s3",
        endpoint_url=settings.endpoint or None,
        aws_access_key_id=settings.access_key or None,
        aws_secret_access_key=settings.secret_key.get_secret_value() or None,
        region_name=settings.region,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=min(5.0, settings.timeout_s),
            read_timeout=settings.timeout_s,
            retries={"mode": "standard", "total_max_attempts": _NUM_TRIES},
            max_pool_connections=_NUM_CONNECTIONS,
        ),
    )


def _whole(body: Any, length: int, bucket: str, key: str) -> Iterator[bytes]:
    """The body in pieces; a connection that ends early is an error, never a shorter object."""
    num_bytes = 0
    with translated(bucket, key):
        pieces: Iterable[bytes] = body.iter_chunks(_READ_BYTES)
        for piece in pieces:
            num_bytes += len(piece)
            yield piece
    if num_bytes != length:
        raise ObjectStoreUnavailable(
            "the object store closed the connection early", key=key, num_bytes=num_bytes
        )


def _check_size(num_bytes: int, max_bytes: int) -> None:
    if num_bytes > max_bytes:
        raise DocumentTooLarge(
            f"the file is larger than {max_bytes} bytes",
            hint="raise parser.max_file_bytes",
            max_bytes=max_bytes,
        )
