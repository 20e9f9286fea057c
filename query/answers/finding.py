"""From the parts of a question to evidence for each: search, rerank, choose, decide."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.domain.access import Principal
from core.domain.answers import Timings
from core.domain.documents import ActiveVersion
from core.domain.search import Passage, SearchFilter
from query.answers.deps import AnswerDeps
from query.answers.evidence import Evidence, choose_evidence
from query.answers.parts import Part
from query.retrieval.reranking import Reranked, rerank
from query.retrieval.search import Retrieved, retrieve


@dataclass(frozen=True, slots=True)
class FoundPart:
    """One part of a question, and the evidence for it (none: not in the documents)."""

    part: Part
    reranked: Reranked
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """`index_generation` is equal for two searches that saw the same generations through the same
    embedder."""

    parts: tuple[FoundPart, ...]
    timings: Timings
    index_generation: str

    @property
    def versions(self) -> Mapping[str, ActiveVersion]:
        """By generation id."""
        return {
            name: version
            for item in self.parts
            for name, version in item.reranked.retrieved.versions.items()
        }

    def passages(self, limit: int) -> list[Passage]:
        """Best first: the first `limit` of every part, and all that is evidence."""
        quoted = {e.passage.point_id for item in self.parts for e in item.evidence}
        passages: dict[str, Passage] = {}
        for item in self.parts:
            for rank, passage in enumerate(item.reranked.passages):
                if rank < limit or passage.point_id in quoted:
                    passages.setdefault(passage.point_id, passage)
        return list(passages.values())


def find(
    principal: Principal, parts: Sequence[Part], where: SearchFilter, deps: AnswerDeps
) -> Found:
    """Search for every part in one snapshot and choose the evidence.

    Raises IndexUnavailable, ModelsUnavailable, CatalogUnavailable, Overloaded, NotPermitted;
    InvalidInput for a question beyond the embedder's limit.
    """
    settings = deps.settings
    with deps.catalog.snapshot(principal) as snapshot:
        # Opened before anything is searched, and closed before anything is sent: a slow reader must
        # not hold a read transaction.
        retrieved, spent = retrieve(
            principal, [part.query for part in parts], where, snapshot, deps.retrieval
        )
    started = deps.clock.monotonic()
    reranked = rerank(
        retrieved,
        num_passages=settings.retrieval.rerank_passages or settings.retrieval.passages,
    )
    found = tuple(
        FoundPart(part, item, _evidence(item, deps))
        for part, item in zip(parts, reranked, strict=True)
    )
    timings = Timings(
        embed_ms=spent.embed_ms,
        search_ms=spent.search_ms,
        rerank_ms=(deps.clock.monotonic() - started) * 1000,
    )
    return Found(found, timings, _index_generation(retrieved, deps))


def _evidence(reranked: Reranked, deps: AnswerDeps) -> tuple[Evidence, ...]:
    evidence = choose_evidence(reranked, deps.settings.answer.max_quotes)
    return tuple(evidence) if deps.is_answerable(reranked, evidence) else ()


def _index_generation(retrieved: Sequence[Retrieved], deps: AnswerDeps) -> str:
    generations = {name for item in retrieved for name in item.versions}
    seen = "\n".join([deps.embedder.info().fingerprint, *sorted(generations)])
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
