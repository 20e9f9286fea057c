"""/v1/search: the best passages for a query, without an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from fastapi import APIRouter

from core.domain.access import Principal, Scope
from core.domain.documents import ActiveVersion
from core.domain.pages import Page
from core.domain.search import Passage, SearchFilter
from core.errors import InvalidInput
from query.answers.sources import SourceMaker
from query.api.schemas.answers import (
    FoundPassage,
    Location,
    Scores,
    SearchRequest,
    SearchResult,
    SearchTimings,
)
from query.http.auth import Searcher, TheServices
from query.retrieval.reranking import rerank
from query.retrieval.search import RetrievalDeps, Retrieved, retrieve
from query.services import Services

router = APIRouter(prefix="/v1/search", tags=["search"])


@router.post("", response_model_exclude_unset=True)
def search(asked: SearchRequest, principal: Searcher, services: TheServices) -> SearchResult:
    """Passages in the order an answer would use them; scores only with scope `explain`."""
    settings = services.settings
    if len(asked.query) > settings.answer.max_question_chars:
        raise InvalidInput(
            f"the query is longer than {settings.answer.max_question_chars} characters"
        )
    deps = RetrievalDeps(services.index, services.embedder, services.clock, settings.retrieval)
    where = SearchFilter(tuple(asked.collections), tuple(asked.document_ids))
    started = services.clock.monotonic()
    with services.catalog.snapshot(principal) as snapshot:
        (found,), spent = retrieve(principal, [asked.query], where, snapshot, deps)
    reranking = services.clock.monotonic()
    passages = _ranked(found, services)[: asked.limit]
    reranked = services.clock.monotonic()
    data = _present(principal, services, passages, found.versions)
    timings = SearchTimings(
        embed_ms=round(spent.embed_ms, 1),
        search_ms=round(spent.search_ms, 1),
        rerank_ms=round((reranked - reranking) * 1000, 1),
        total_ms=round((services.clock.monotonic() - started) * 1000, 1),
    )
    return SearchResult(data=data, timings=timings)


def _ranked(found: Retrieved, services: Services) -> Sequence[Passage]:
    settings = services.settings.retrieval
    if not settings.rerank_passages or not found.passages:
        return found.passages
    (reranked,) = rerank([found], num_passages=settings.rerank_passages)
    return reranked.passages


def _present(
    principal: Principal,
    services: Services,
    passages: Sequence[Passage],
    versions: Mapping[str, ActiveVersion],
) -> list[FoundPassage]:
    pages = _pages_of(principal, services, passages, versions)
    public_url = services.settings.api.public_url
    makes_source = SourceMaker("", public_url, principal.has(Scope.EXPLAIN))
    found = []
    for passage in passages:
        version = versions[passage.generation_id]
        source = makes_source.source(passage.point_id, passage, version)
        shown = FoundPassage(
            chunk_id=passage.point_id,
            document_id=source.document_id,
            version=source.version,
            title=source.title,
            collection=source.collection,
            pages=list(source.pages),
            text=passage.chunk.text,
            heading_path=list(passage.chunk.heading_path),
            locations=_locations(passage, pages[version.generation_id]),
            view_url=source.view_url,
        )
        if source.scores is not None:
            shown = shown.model_copy(update={"scores": Scores(**asdict(source.scores))})
        found.append(shown)
    return found


def _pages_of(
    principal: Principal,
    services: Services,
    passages: Sequence[Passage],
    versions: Mapping[str, ActiveVersion],
) -> dict[str, dict[int, Page]]:
    """The stored pages of each generation that its passages stand on, read once."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for passage in passages:
        wanted[passage.generation_id].update(passage.chunk.pages)
    return {
        generation_id: services.artifacts.read_pages(
            principal,
            versions[generation_id].sha256,
            versions[generation_id].parser_fingerprint,
            sorted(numbers),
        )
        for generation_id, numbers in wanted.items()
    }


def _locations(passage: Passage, pages: Mapping[int, Page]) -> list[Location]:
    return [
        Location(
            page=span.page,
            start=span.start,
            end=span.end,
            rects=list(pages[span.page].rects(span.start, span.end)) if span.page in pages else [],
        )
        for span in passage.chunk.spans
    ]
