"""/v1/documents/{id}/pages: stored text, pictures, and rectangles of a quote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from core.domain.access import Principal
from core.domain.documents import ActiveVersion
from core.domain.pages import Rect
from core.errors import InvalidInput, NotFound
from query.api.files import Version, version_hash
from query.api.schemas.documents import PageText, QuoteRects
from query.http.auth import Searcher, TheServices
from query.http.slots import Threads
from query.services import Services

router = APIRouter(prefix="/v1/documents/{document_id}/pages/{page}", tags=["pages"])


async def _render_threads(request: Request) -> Threads:
    threads: Threads = request.app.state.render_threads
    return threads


PageNumber = Annotated[int, Path(ge=1, le=1_000_000, description="from 1")]
Offset = Annotated[int, Query(ge=0, le=100_000_000, description="code points of the page's text")]
RenderThreads = Annotated[Threads, Depends(_render_threads)]
_WIDTH_STEP = 100  # pixels: the cache of pictures stays small
_PNG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}}, "description": "The page as displayed"}
}


@router.get("")
def show_page(
    document_id: str,
    page: PageNumber,
    principal: Searcher,
    services: TheServices,
    v: Version = None,
) -> PageText:
    """The stored text that quotes are cut from, with the page's size, label and printed lines."""
    version = _version(services, principal, document_id, v)
    stored = services.artifacts.read_pages(
        principal, version.sha256, version.parser_fingerprint, [page]
    )
    if page not in stored:
        raise NotFound(f"this document has no page {page}", hint=f"it has {version.page_count}")
    return PageText.of(document_id, version.sha256, version.page_count, stored[page])


@router.get("/image", response_class=Response, responses=_PNG)
async def page_image(
    document_id: str,
    page: PageNumber,
    principal: Searcher,
    services: TheServices,
    threads: RenderThreads,
    v: Version = None,
    width: Annotated[int, Query(ge=100, le=3000, description="pixels")] = 1000,
) -> Response:
    """The page as displayed, as PNG; rendered in a sandboxed process and cached."""
    width_px = max(_WIDTH_STEP, round(width / _WIDTH_STEP) * _WIDTH_STEP)

    def draw() -> bytes:
        version = _version(services, principal, document_id, v)
        return services.renderer.page_png(principal, version, page, width_px=width_px)

    picture = await threads.run(draw)
    # Only an address that names the version always shows the same; and only to whoever may see it.
    caching = "private, max-age=3600" if v is not None else "private, no-cache"
    return Response(picture, media_type="image/png", headers={"Cache-Control": caching})


@router.get("/rects")
async def quote_rects(
    document_id: str,
    page: PageNumber,
    start: Offset,
    end: Offset,
    principal: Searcher,
    services: TheServices,
    threads: RenderThreads,
    v: Version = None,
) -> QuoteRects:
    """Rectangles that cover exactly the words of `text[start:end]`, one a printed line."""
    if start >= end:
        raise InvalidInput("start and end must be 0 <= start < end")

    def find() -> Sequence[Rect]:
        version = _version(services, principal, document_id, v)
        return services.renderer.word_rects(principal, version, page, start, end)

    return QuoteRects(page=page, start=start, end=end, rects=list(await threads.run(find)))


def _version(
    services: Services, principal: Principal, document_id: str, v: str | None
) -> ActiveVersion:
    with services.catalog.snapshot(principal) as snapshot:
        return snapshot.version(document_id, version_hash(v))
