"""/v1/documents: upload, list, show, delete."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, BinaryIO, cast

from fastapi import APIRouter, Query, Request, Response
from python_multipart.multipart import parse_options_header

from core.domain.access import Principal
from core.domain.documents import DocumentStatus, ObservedObject, Queue
from core.errors import InvalidInput, NotFound, NotPermitted
from query.api.audit import write_audit
from query.api.keys import object_key, require_collection
from query.api.schemas.base import Listing
from query.api.schemas.documents import AcceptedUpload, Document
from query.http.auth import Ingester, Searcher, TheServices
from query.http.errors import request_id_of
from query.http.multipart import MultipartFile
from query.http.slots import Slots
from query.http.uploads import HashedBody, too_large, wait_for
from query.services import Services

router = APIRouter(prefix="/v1/documents", tags=["documents"])
_FORM_ALLOWANCE_BYTES = 65_536  # what a form adds to its file, for a refusal by announced length
_MAX_CONTENT_TYPE = 200


@router.post(
    "",
    status_code=202,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "collection": {"type": "string"},
                            "filename": {"type": "string"},
                            "file": {"type": "string", "format": "binary"},
                        },
                    }
                },
            },
        }
    },
)
async def add_document(
    request: Request,
    principal: Ingester,
    services: TheServices,
    collection: str = "default",
    filename: str = "",
) -> AcceptedUpload:
    """Upload one file: a raw body with `?filename=`, or a multipart form with a file (its fields
    before the file).

    The same bytes under the same key are a success that names the existing version.
    """
    max_bytes = services.settings.api.max_upload_bytes
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:18]) > max_bytes + _FORM_ALLOWANCE_BYTES:
        raise too_large(max_bytes)
    slots: Slots = request.app.state.upload_slots
    with slots.take():
        return await slots.run(
            partial(_add, request, principal, services, collection=collection, filename=filename)
        )


@router.get("")
def list_documents(
    principal: Searcher,
    services: TheServices,
    status: DocumentStatus | None = None,
    collection: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Listing[Document]:
    """Documents with their derived status, newest first."""
    with services.catalog.snapshot(principal) as snapshot:
        records, next_cursor = snapshot.documents(
            status=status, collection=collection, cursor=cursor, limit=limit
        )
    return Listing(data=[Document.of(record) for record in records], next_cursor=next_cursor)


@router.get("/{document_id}")
def show_document(document_id: str, principal: Searcher, services: TheServices) -> Document:
    with services.catalog.snapshot(principal) as snapshot:
        return Document.of(snapshot.document(document_id))


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
    write_audit(services, request_id_of(request), principal, "document.delete", document_id)
    return Response(status_code=204)


@dataclass(frozen=True, slots=True)
class _Upload:
    """Where the bytes come from and what they should be called."""

    collection: str
    filename: str
    content_type: str | None
    pieces: AsyncIterator[bytes]


def _add(
    request: Request, principal: Principal, services: Services, *, collection: str, filename: str
) -> AcceptedUpload:
    """In a worker thread, which waits for the client and for the store."""
    api = services.settings.api
    bucket = _bucket_for_uploads(services, principal)
    upload = _upload_of(request, services, collection, filename)
    key = object_key(upload.collection, upload.filename)
    require_collection(key, principal.collections)
    body = HashedBody(upload.pieces, max_bytes=api.max_upload_bytes, idle_s=api.upload_idle_s)
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
    write_audit(services, request_id_of(request), principal, "document.add", accepted.document_id)
    return AcceptedUpload.of(accepted, sha256=body.sha256, bucket=bucket, key=key)


def _upload_of(request: Request, services: Services, collection: str, filename: str) -> _Upload:
    header = request.headers.get("content-type", "")
    media_type, options = parse_options_header(header)
    if media_type != b"multipart/form-data":
        if not filename:
            raise InvalidInput("a file name is needed", hint="?filename=report.pdf")
        return _Upload(collection, filename, _content_type(header), request.stream())
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidInput("the form has no boundary")
    api = services.settings.api
    form = MultipartFile(request.stream(), boundary, api.max_upload_bytes)
    wait_for(form.find, api.upload_idle_s)
    return _Upload(
        form.fields.get("collection", collection),
        form.fields.get("filename", "") or filename or form.filename,
        _content_type(form.content_type or ""),
        form.pieces(),
    )


def _content_type(header: str) -> str | None:
    """What the client says it is; only remembered, never believed."""
    is_plain = header.isascii() and header.isprintable() and len(header) <= _MAX_CONTENT_TYPE
    return header if header and is_plain else None


def _bucket_for_uploads(services: Services, principal: Principal) -> str:
    for bucket in services.settings.objects.buckets:
        is_theirs = services.tenant_ids.get(bucket) == principal.tenant_id
        if is_theirs and bucket not in services.settings.objects.read_only_buckets:
            return bucket
    raise NotPermitted(
        "no bucket of this tenant takes uploads", hint="PINCITE_OBJECTS__BUCKETS maps one to it"
    )
