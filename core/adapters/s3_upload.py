"""Writing an object whole, in bounded memory: one request, or a multipart upload in parts."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from core.adapters.s3_errors import translated
from core.domain.documents import ObjectStat
from core.errors import PinciteError

if TYPE_CHECKING:
    from typing import BinaryIO

    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_BYTES = 8 * 1024 * 1024  # S3 wants at least 5 MiB


def upload(client: S3Client, wanted: dict[str, Any], source: BinaryIO) -> ObjectStat:
    """Write `source` to `wanted["Bucket"]`, `wanted["Key"]`; the rest of `wanted` goes along.

    What fails leaves no object. Raises as `translated` does, and what reading `source` raises.
    """
    first = _read_part(source)
    if len(first) == PART_BYTES:
        return _upload_parts(client, wanted, first, source)
    with translated(wanted["Bucket"], wanted["Key"]):
        written = client.put_object(Body=first, **wanted)
    return _written(wanted, written, len(first))


def _upload_parts(
    client: S3Client, wanted: dict[str, Any], first: bytes, rest: BinaryIO
) -> ObjectStat:
    """Holds one part in memory; aborted when anything fails."""
    bucket, key = wanted["Bucket"], wanted["Key"]
    with translated(bucket, key):
        upload_id = client.create_multipart_upload(**wanted)["UploadId"]
    name: dict[str, Any] = {"Bucket": bucket, "Key": key, "UploadId": upload_id}
    try:
        parts: list[CompletedPartTypeDef] = []
        num_bytes = 0
        part = first
        while part:
            number = len(parts) + 1
            with translated(bucket, key):
                sent = client.upload_part(**name, PartNumber=number, Body=part)
            parts.append({"ETag": sent["ETag"], "PartNumber": number})
            num_bytes += len(part)
            part = _read_part(rest)
        with translated(bucket, key):
            written = client.complete_multipart_upload(**name, MultipartUpload={"Parts": parts})
    except BaseException:
        # What cannot be aborted is left to the store's own clean-up; the first error is told.
        with suppress(PinciteError), translated(bucket, key):
            client.abort_multipart_upload(**name)
        raise
    return _written(wanted, written, num_bytes)


def _read_part(source: BinaryIO) -> bytes:
    """The next PART_BYTES; fewer only at the end (raw streams may return less a read)."""
    pieces: list[bytes] = []
    missing = PART_BYTES
    while missing and (piece := source.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _written(wanted: dict[str, Any], answer: Any, num_bytes: int) -> ObjectStat:
    # Not a HEAD: somebody else may have replaced the object since, and this is what *we* wrote.
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    at = parsedate_to_datetime(date) if date else datetime.now(UTC)
    etag = answer["ETag"].strip('"')
    return ObjectStat(
        wanted["Bucket"], wanted["Key"], etag, num_bytes, at, wanted.get("ContentType")
    )
