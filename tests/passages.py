"""Builders of chunks, passages and candidates for tests of retrieval and answers."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.access import Principal, Scope
from core.domain.documents import ActiveVersion
from core.domain.pages import Chunk, Line, Page, PageOutcome, SourceSpan
from core.domain.search import (
    Candidate,
    LegResults,
    Passage,
    RetrievalScores,
    SearchFilter,
    SparseVector,
)
from query.retrieval.reranking import ScoredSentence
from query.retrieval.sentences import sentences_of

SHA256 = "a" * 64
PARSER = "parser-1"
ASKER = Principal("ten_1", "key_1", frozenset({Scope.SEARCH}))


def make_chunk(
    text: str,
    *,
    headings: Sequence[str] = (),
    title: str = "",
    is_table: bool = False,
    language: str = "en",
    spans: Sequence[SourceSpan] | None = None,
) -> Chunk:
    """A chunk that stands at the beginning of page 1 unless spans say otherwise."""
    prefix = " > ".join([title, *headings] if title else headings)
    return Chunk(
        ordinal=0,
        text=text,
        heading_path=tuple(headings),
        index_text=f"{prefix}\n{text}" if prefix else text,
        spans=tuple(spans) if spans is not None else (SourceSpan(1, 0, len(text), 0, len(text)),),
        language=language,
        num_tokens=len(text.split()),
        is_table=is_table,
    )


def make_passage(
    chunk: Chunk | str,
    point_id: str = "p1",
    *,
    dense: float | None = 0.5,
    fused: float = 0.5,
    title: str = "",
) -> Passage:
    return Passage(
        point_id=point_id,
        document_id=f"doc_{point_id}",
        generation_id=f"gen_{point_id}",
        collection="plant",
        title=title,
        chunk=make_chunk(chunk) if isinstance(chunk, str) else chunk,
        scores=RetrievalScores(dense=dense, fused=fused),
    )


def make_candidate(
    point_id: str, leg_score: float, *, generation_id: str = "gen_1", text: str = "Some text."
) -> Candidate:
    return Candidate(
        point_id, "doc_1", generation_id, "plant", "Manual", make_chunk(text), leg_score
    )


def make_version(generation_id: str = "gen_1", document_id: str = "doc_1") -> ActiveVersion:
    return ActiveVersion(
        generation_id=generation_id,
        document_id=document_id,
        version_seq=1,
        sha256=SHA256,
        title="Manual.pdf",
        collection="plant",
        bucket="documents",
        key="plant/Manual.pdf",
        page_count=1,
        etag="e1",
        parser_fingerprint=PARSER,
    )


def make_page(text: str, number: int = 1) -> Page:
    """A page of 600 x 800 points with one printed line for each line of the text."""
    lines, start = [], 0
    for place, line in enumerate(text.split("\n")):
        top = round(0.1 + 0.05 * place, 3)
        lines.append(Line(start, start + len(line), (0.1, top, 0.9, round(top + 0.03, 3))))
        start += len(line) + 1
    return Page(number, 600.0, 800.0, 0, str(number), text, tuple(lines), (), PageOutcome.OK)


def make_scored(
    passage: Passage, ordinal: int = 0, *, cosine: float | None = 0.5
) -> ScoredSentence:
    """The `ordinal`-th sentence of a passage with nothing but a cosine to speak for it."""
    return ScoredSentence(
        sentence=sentences_of(passage)[ordinal],
        lexical=0.0,
        coverage=0.0,
        fused=0.0,
        dense=0.0,
        kind=None,
        cosine=cosine,
        focus_cosine=cosine,
    )


class Snapshot:
    """The part of a catalog snapshot that retrieval uses: these generations are active."""

    def __init__(self, *generation_ids: str) -> None:
        self.generation_ids = set(generation_ids)
        self.asked: list[list[str]] = []

    def active(self, generation_ids: Sequence[str]) -> dict[str, ActiveVersion]:
        self.asked.append(list(generation_ids))
        return {g: make_version(g) for g in generation_ids if g in self.generation_ids}


class ListedIndex:
    """The part of a vector index that retrieval uses, over fixed candidates, best first."""

    def __init__(self, dense: Sequence[Candidate] = (), lexical: Sequence[Candidate] = ()) -> None:
        self.dense, self.lexical = list(dense), list(lexical)
        self.filters: list[SearchFilter] = []
        self.legs: list[tuple[bool, bool]] = []

    def search(
        self,
        principal: Principal,
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults:
        self.filters.append(where)
        self.legs.append((dense is not None, lexical is not None))

        def best(leg: Sequence[Candidate]) -> tuple[Candidate, ...]:
            hidden = where.excluded_generation_ids
            return tuple(c for c in leg if c.generation_id not in hidden)[:limit]

        return LegResults(
            best(self.dense) if dense is not None else (),
            best(self.lexical) if lexical is not None else (),
        )
