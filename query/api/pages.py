"""/v1/documents/{id}/pages: stored text, pictures, and rectangles of a quote."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from core.errors import InvalidInput, NotFound
from query.api.documents import Version, version_hash
from query.http.auth import Searcher, TheServices

router = APIRouter(prefix="/v1/documents/{document_id}/pages/{page}", tags=["pages"])


@router.get("")
def show_page(
    document_id: str, page: int, principal: Searcher, services: TheServices, v: Version = None
) -> dict[str, Any]:
    """The stored text that quotes are cut from, with the page's size, label and printed lines."""
    with services.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id, version_hash(v))
    stored = services.artifacts.read_pages(
        principal, version.sha256, version.parser_fingerprint, [page]
    )
    if page not in stored:
        raise NotFound(f"this document has no page {page}", hint=f"it has {version.page_count}")
    found = stored[page]
    return {
        "document_id": document_id,
        "version": f"sha256:{version.sha256}",
        "page": page,
        "num_pages": version.page_count,
        "label": found.label,
        "width": found.width,
        "height": found.height,
        "text": found.text,
        "outcome": found.outcome.value,
        "lines": [
            {"start": line.start, "end": line.end, "rect": line.rect} for line in found.lines
        ],
    }


@router.get("/image")
def page_image(
    document_id: str,
    page: int,
    principal: Searcher,
    services: TheServices,
    v: Version = None,
    width: Annotated[int, Query(ge=100, le=3000)] = 1000,
) -> Response:
    """The page as displayed, as PNG; rendered in a sandboxed process and cached."""
    with services.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id, version_hash(v))
    picture = services.renderer.page_png(principal, version, page, width_px=_bucketed(width))
    return Response(
        picture, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"}
    )


@router.get("/rects")
def quote_rects(
    document_id: str,
    page: int,
    start: int,
    end: int,
    principal: Searcher,
    services: TheServices,
    v: Version = None,
) -> dict[str, Any]:
    """Rectangles that cover exactly the words of `text[start:end]`, one a printed line."""
    if not 0 <= start < end:
        raise InvalidInput("start and end must be 0 <= start < end")
    with services.catalog.snapshot(principal) as snapshot:
        version = snapshot.version(document_id, version_hash(v))
    rects = services.renderer.word_rects(principal, version, page, start, end)
    return {"page": page, "start": start, "end": end, "rects": rects}


def _bucketed(width: int) -> int:
    """Steps of 100 pixels, so that the cache of pictures stays small."""
    return max(100, round(width / 100) * 100)
