"""Searching both legs, keeping only what the caller's snapshot may show.

The catalog decides what is visible, not the index: points of a generation that is not active in the
snapshot are dropped, and when they crowded out the visible ones the search is repeated without
them. One question is one embedding call, and one index request a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core.domain.access import Principal
from core.domain.documents import ActiveVersion
from core.domain.search import Candidate, LegResults, Passage, SearchFilter, SparseVector
from core.ports.clock import Clock
from core.ports.models import Embedder
from core.settings import RetrievalSettings
from query.retrieval.fusion import fuse
from query.retrieval.questions import Question, analyse, encode

# A leg that came back full is searched again when fewer than this share of it was visible.
_MIN_VISIBLE_SHARE = 0.5
_MAX_ROUNDS = 4


class SearchesIndex(Protocol):
    """The part of `core.ports.vector_index.VectorIndex` that is needed here."""

    def search(
        self,
        principal: Principal,
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults: ...


class KnowsActive(Protocol):
    """The part of `core.ports.catalog.Snapshot` that is needed here."""

    def active(self, generation_ids: Sequence[str]) -> dict[str, ActiveVersion]: ...


@dataclass(frozen=True, slots=True)
class RetrievalDeps:
    index: SearchesIndex
    embedder: Embedder
    clock: Clock
    settings: RetrievalSettings


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one question found.

    `passages` are fused, best first. `versions` has the active version of each passage's
    generation. `vector` is the question's embedding and `focus_vector` that of its focus; both
    empty when no step of the settings needs them.
    """

    question: Question
    vector: tuple[float, ...]
    focus_vector: tuple[float, ...]
    passages: tuple[Passage, ...]
    versions: Mapping[str, ActiveVersion]
    num_rounds: int


@dataclass(frozen=True, slots=True)
class RetrievalTimings:
    """Of all the questions together."""

    embed_ms: float
    search_ms: float


def retrieve(
    principal: Principal,
    texts: Sequence[str],
    where: SearchFilter,
    snapshot: KnowsActive,
    deps: RetrievalDeps,
) -> tuple[list[Retrieved], RetrievalTimings]:
    """Search for each text; the embedder is asked once for all of them.

    Args:
        texts: standalone questions, usually one, or the parts of one.
        where: narrowing inside what the Principal may see.
        snapshot: opened before this call, so that nothing that became visible during the search
            (or ceased to be) is mixed with what was visible before.

    Raises IndexUnavailable, ModelsUnavailable, CatalogUnavailable, Overloaded, NotPermitted.
    """
    started = deps.clock.monotonic()
    needs_vectors = deps.settings.legs != "lexical" or deps.settings.rerank_passages > 0
    questions = [analyse(text) for text in texts]
    vectors = _embed(questions, deps.embedder) if needs_vectors else {}
    embedded = deps.clock.monotonic()
    found = [
        _retrieve_one(principal, question, vectors, where, _Visible(snapshot, deps))
        for question in questions
    ]
    finished = deps.clock.monotonic()
    return found, RetrievalTimings((embedded - started) * 1000, (finished - embedded) * 1000)


@dataclass(frozen=True, slots=True)
class _Visible:
    snapshot: KnowsActive
    deps: RetrievalDeps


def _retrieve_one(
    principal: Principal,
    question: Question,
    vectors: Mapping[str, tuple[float, ...]],
    where: SearchFilter,
    visible: _Visible,
) -> Retrieved:
    settings = visible.deps.settings
    vector = vectors.get(question.text, ())
    lexical = None if settings.legs == "dense" else encode(question)
    if lexical is not None and not lexical.indices:
        lexical = None
    dense = None if settings.legs == "lexical" else vector
    hidden = set(where.excluded_generation_ids)
    versions: dict[str, ActiveVersion] = {}
    kept = LegResults()
    num_rounds = 0
    while (dense is not None or lexical is not None) and num_rounds < _MAX_ROUNDS:
        num_rounds += 1
        legs = visible.deps.index.search(
            principal,
            dense=dense,
            lexical=lexical,
            limit=settings.candidates,
            where=replace(where, excluded_generation_ids=tuple(sorted(hidden))),
        )
        seen = {candidate.generation_id for candidate in (*legs.dense, *legs.lexical)}
        versions = visible.snapshot.active(sorted(seen))
        hidden |= seen - versions.keys()
        kept = LegResults(_keep(legs.dense, versions), _keep(legs.lexical, versions))
        if not any(
            _is_crowded_out(leg, visible_leg, settings.candidates)
            for leg, visible_leg in ((legs.dense, kept.dense), (legs.lexical, kept.lexical))
        ):
            break
    return Retrieved(
        question=question,
        vector=vector,
        focus_vector=vectors.get(question.focus, ()),
        passages=tuple(fuse(kept, settings.fusion)),
        versions=versions,
        num_rounds=num_rounds,
    )


def _embed(questions: Sequence[Question], embedder: Embedder) -> dict[str, tuple[float, ...]]:
    texts = list(dict.fromkeys(text for item in questions for text in (item.text, item.focus)))
    return dict(zip(texts, map(tuple, embedder.embed_questions(texts)), strict=True))


def _keep(leg: Sequence[Candidate], versions: Mapping[str, ActiveVersion]) -> tuple[Candidate, ...]:
    """Visible candidates, under the title and collection that the catalog has for them now."""
    return tuple(
        replace(
            candidate,
            title=versions[candidate.generation_id].title,
            collection=versions[candidate.generation_id].collection,
        )
        for candidate in leg
        if candidate.generation_id in versions
    )


def _is_crowded_out(leg: Sequence[Candidate], visible: Sequence[Candidate], limit: int) -> bool:
    """Whether hidden points took so much of a full leg that visible ones may have been lost."""
    return len(leg) >= limit and len(visible) < _MIN_VISIBLE_SHARE * limit
