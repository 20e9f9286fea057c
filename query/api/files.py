"""/v1/documents/{id}/file: the original bytes of exactly one version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from core.domain.access import Principal
from core.domain.documents import ActiveVersion, ObjectStat
from core.errors import Gone, InvalidInput, NotFound, ObjectChanged
from query.http.auth import Searcher, TheServices
from query.http.ranges import parse_range
from query.services import Services

router = APIRouter(prefix="/v1/documents/{document_id}/file", tags=["documents"])

Version = Annotated[
    str | None, Query(alias="v", description="sha256:<hex>; the active version when missing")
]
_PDF: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/pdf": {}}, "description": "The whole file"},
    206: {"content": {"application/pdf": {}}, "description": "The wanted range"},
    410: {"description": "These bytes are no longer kept"},
    416: {"description": "The range lies outside the file"},
}


@router.get("", response_class=StreamingResponse, responses=_PDF)
def original(
    document_id: str,
    request: Request,
    principal: Searcher,
    services: TheServices,
    v: Version = None,
) -> Response:
    """The original bytes of exactly one version, with Range; 410 when they are no longer kept."""
    version, stat = _find(services, principal, document_id, v)
    headers = _headers(version)
    wanted = request.headers.get("range")
    if request.headers.get("if-range", headers["ETag"]) != headers["ETag"]:
        wanted = None
    byte_range = parse_range(wanted, stat.size_bytes)
    length = stat.size_bytes
    if byte_range is not None:
        first, last = byte_range
        length = last - first + 1
        headers["Content-Range"] = f"bytes {first}-{last}/{stat.size_bytes}"
    headers["Content-Length"] = str(length)
    return StreamingResponse(
        _bytes_of(services, principal, stat, byte_range),
        status_code=200 if byte_range is None else 206,
        headers=headers,
        media_type="application/pdf",
    )


@router.head("", include_in_schema=False)
def describe(
    document_id: str, principal: Searcher, services: TheServices, v: Version = None
) -> Response:
    """The headers of the above, without opening the file."""
    version, stat = _find(services, principal, document_id, v)
    headers = _headers(version) | {"Content-Length": str(stat.size_bytes)}
    return Response(headers=headers, media_type="application/pdf")


def version_hash(v: str | None) -> str | None:
    """The hex of `sha256:<hex>`. Raises InvalidInput."""
    if v is None:
        return None
    algorithm, _, digest = v.partition(":")
    if algorithm != "sha256" or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise InvalidInput("a version looks like sha256:<64 hex digits>")
    return digest


def _find(
    services: Services, principal: Principal, document_id: str, v: str | None
) -> tuple[ActiveVersion, ObjectStat]:
    with services.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id, version_hash(v))
    key = services.artifacts.original_key(principal, version.sha256)
    stat = services.store.head(principal, services.artifacts.bucket, key)
    if stat is None:
        raise _gone()
    return version, stat


def _headers(version: ActiveVersion) -> dict[str, str]:
    name = quote(version.key.rpartition("/")[2], safe="")
    return {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f"inline; filename*=UTF-8''{name}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-store",
        "ETag": f'"{version.sha256}"',
    }


def _bytes_of(
    services: Services,
    principal: Principal,
    stat: ObjectStat,
    byte_range: tuple[int, int] | None,
) -> Iterator[bytes]:
    """The bytes, opened before this returns, so that a store that is down is an honest error. The
    store's connection is given back when the iterator ends or is dropped."""
    stack = ExitStack()
    opened = services.store.open(
        principal, stat.bucket, stat.key, byte_range=byte_range, if_match=stat.etag
    )
    try:
        stream = stack.enter_context(opened)
    except (NotFound, ObjectChanged) as error:  # purged since we looked
        raise _gone() from error

    def pieces() -> Iterator[bytes]:
        with stack:
            yield from stream.chunks

    rest = pieces()
    return chain([next(rest, b"")], rest)  # begun, so that dropping it closes the stack


def _gone() -> Gone:
    return Gone("the bytes of this version are no longer kept")
