"""/v1/documents: upload, list, show, delete, original bytes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, cast

import anyio.from_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from python_multipart.multipart import parse_options_header

from core.domain.access import Principal
from core.domain.documents import DocumentStatus, ObjectStat, ObservedObject, Queue
from core.errors import DocumentTooLarge, Gone, InvalidInput, NotFound
from query.api.audit import write_audit
from query.api.keys import object_key, require_collection
from query.api.shapes import document_json, page_of
from query.http.auth import Ingester, Searcher, TheServices
from query.http.uploads import HashedBody, MultipartFile
from query.services import Services

router = APIRouter(prefix="/v1/documents", tags=["documents"])
_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")

Version = Annotated[
    str | None, Query(alias="v", description="sha256:<hex>; the active version when missing")
]


@router.post("", status_code=202)
def add_document(
    request: Request,
    principal: Ingester,
    services: TheServices,
    collection: str = "default",
    filename: str = "",
) -> dict[str, Any]:
    """Upload one file: a raw body with `?filename=`, or a multipart form with a file.

    The same bytes under the same key are a success that names the existing version.
    """
    upload = _Upload.of(request, collection, filename)
    _refuse_early(request, services.settings.api.max_upload_bytes)
    key = object_key(upload.collection, upload.filename)
    require_collection(key, principal.collections)
    bucket = _upload_bucket(services)
    body = HashedBody(upload.pieces, services.settings.api.max_upload_bytes)
    stat = services.store.put(
        principal, bucket, key, cast("BinaryIO", body), content_type=upload.content_type
    )
    accepted = services.accept(
        principal,
        ObservedObject(
            bucket=bucket,
            key=key,
            etag=stat.etag,
            size_bytes=stat.size_bytes,
            last_modified=stat.last_modified,
            sha256=body.sha256,
            content_type=upload.content_type,
        ),
        queue=Queue.INTERACTIVE,
    )
    write_audit(services, request, principal, "document.add", accepted.document_id)
    return {
        "document_id": accepted.document_id,
        "version_seq": accepted.version_seq,
        "version": f"sha256:{body.sha256}",
        "job_id": accepted.job_id,
        "is_new": accepted.is_new,
        "bucket": bucket,
        "key": key,
    }


@router.get("")
def list_documents(
    principal: Searcher,
    services: TheServices,
    status: DocumentStatus | None = None,
    collection: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """Documents with their derived status, newest first."""
    with services.catalog.snapshot(principal) as snapshot:
        records, next_cursor = snapshot.documents(
            status=status, collection=collection, cursor=cursor, limit=limit
        )
    return page_of([document_json(record) for record in records], next_cursor)


@router.get("/{document_id}")
def show_document(document_id: str, principal: Searcher, services: TheServices) -> dict[str, Any]:
    with services.catalog.snapshot(principal) as snapshot:
        return document_json(snapshot.document(document_id))


@router.delete("/{document_id}", status_code=204)
def delete_document(
    document_id: str, request: Request, principal: Ingester, services: TheServices
) -> Response:
    """Delete for good. Nobody sees the document from the moment this returns."""
    with services.catalog.snapshot(principal) as snapshot:
        record = snapshot.document(document_id)
    is_read_only = record.bucket in services.settings.objects.read_only_buckets
    if not is_read_only:
        # The object first: were the document hidden and the object left, reconcile would find it
        # and bring the document back.
        services.store.delete(principal, record.bucket, record.key)
    with contextlib.suppress(NotFound):  # reconcile may have seen the missing object already
        services.catalog.intake.delete(principal, document_id, tombstone=is_read_only)
    write_audit(services, request, principal, "document.delete", document_id)
    return Response(status_code=204)


@router.get("/{document_id}/file")
def original(
    document_id: str,
    request: Request,
    principal: Searcher,
    services: TheServices,
    v: Version = None,
) -> StreamingResponse:
    """The original bytes of exactly one version, with Range; 410 when they are no longer kept."""
    with services.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id, version_hash(v))
    key = services.artifacts.original_key(principal, version.sha256)
    stat = services.store.head(principal, services.artifacts.bucket, key)
    if stat is None:
        raise Gone("the bytes of this version are no longer kept")
    byte_range = _parse_range(request.headers.get("range"), stat.size_bytes)
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": "inline",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-store",
        "ETag": f'"{version.sha256}"',
    }
    status = 200
    length = stat.size_bytes
    if byte_range is not None:
        first, last = byte_range
        status, length = 206, last - first + 1
        headers["Content-Range"] = f"bytes {first}-{last}/{stat.size_bytes}"
    headers["Content-Length"] = str(length)
    return StreamingResponse(
        _bytes_of(services, principal, stat, byte_range),
        status_code=status,
        headers=headers,
        media_type="application/pdf",
    )


def version_hash(v: str | None) -> str | None:
    """The hex of `sha256:<hex>`. Raises InvalidInput."""
    if v is None:
        return None
    algorithm, _, digest = v.partition(":")
    if algorithm != "sha256" or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise InvalidInput("a version looks like sha256:<64 hex digits>")
    return digest


class _Upload:
    """Where the bytes come from and what they should be called."""

    def __init__(self, collection: str, filename: str, content_type: str | None, pieces: Any):
        self.collection = collection
        self.filename = filename
        self.content_type = content_type
        self.pieces = pieces

    @classmethod
    def of(cls, request: Request, collection: str, filename: str) -> _Upload:
        header = request.headers.get("content-type", "")
        media_type, options = parse_options_header(header)
        if media_type != b"multipart/form-data":
            if not filename:
                raise InvalidInput("a file name is needed", hint="?filename=report.pdf")
            return cls(collection, filename, header or None, request.stream())
        boundary = options.get(b"boundary")
        if not boundary:
            raise InvalidInput("the form has no boundary")
        form = MultipartFile(request, boundary)
        anyio.from_thread.run(form.find)
        return cls(
            form.fields.get("collection", collection),
            form.fields.get("filename", "") or filename or form.filename,
            form.content_type,
            form.pieces(),
        )


def _upload_bucket(services: Services) -> str:
    objects = services.settings.objects
    for bucket in objects.buckets:
        if bucket not in objects.read_only_buckets:
            return bucket
    raise InvalidInput("no bucket takes uploads", hint="PINCITE_OBJECTS__BUCKETS")


def _refuse_early(request: Request, max_bytes: int) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > max_bytes + 65_536:  # a form adds a little
        raise DocumentTooLarge(
            f"the file is larger than {max_bytes} bytes", hint="PINCITE_API__MAX_UPLOAD_BYTES"
        )


def _parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """One range, inclusive; None to send all (also for what is not understood: RFC 9110).

    Raises InvalidInput when the range lies outside the file.
    """
    match = _RANGE.match(header or "")
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        first, last = max(0, size - int(match[2])), size - 1
    else:
        first = int(match[1])
        last = min(int(match[2]) if match[2] else size - 1, size - 1)
    if first > last:
        raise InvalidInput(f"that range lies outside the file's {size} bytes")
    return first, last


def _bytes_of(
    services: Services,
    principal: Principal,
    stat: ObjectStat,
    byte_range: tuple[int, int] | None,
) -> Iterator[bytes]:
    opened = services.store.open(
        principal, stat.bucket, stat.key, byte_range=byte_range, if_match=stat.etag
    )
    with opened as stream:
        yield from stream.chunks
