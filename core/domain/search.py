"""What goes into the index and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.domain.pages import Chunk


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term indices (unsigned 32 bit, distinct) and their weights, same length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """What the sentences of a chunk mean, each by itself (core.sentence_vectors packs them).

    `chunk.text[start:end]` of `spans[i]` is described by the i-th row of `rows`: as many signed
    bytes as the embedder has dimensions, a direction without length.
    """

    spans: tuple[tuple[int, int], ...] = ()
    rows: bytes = b""


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """One chunk of one generation as the index stores it. `dense` has the embedder's dimension."""

    point_id: str
    document_id: str
    generation_id: str
    collection: str
    title: str
    chunk: Chunk
    dense: tuple[float, ...]
    lexical: SparseVector
    sentences: SentenceVectors = SentenceVectors()


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Narrowing inside what the Principal may see. Empty tuples mean no narrowing."""

    collections: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()
    excluded_generation_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point found by one leg. `leg_score` is that leg's own scale (cosine, or BM25)."""

    point_id: str
    document_id: str
    generation_id: str
    collection: str
    title: str
    chunk: Chunk
    leg_score: float
    sentences: SentenceVectors = SentenceVectors()


@dataclass(frozen=True, slots=True)
class LegResults:
    """Both legs, best first; ties by point id."""

    dense: tuple[Candidate, ...] = ()
    lexical: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Always qualified. Ranks count from 1; None where the leg did not find the chunk."""

    dense: float | None = None
    dense_rank: int | None = None
    lexical: float | None = None
    lexical_rank: int | None = None
    fused: float = 0.0
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved chunk on its way to an answer."""

    point_id: str
    document_id: str
    generation_id: str
    collection: str
    title: str
    chunk: Chunk
    scores: RetrievalScores = field(default_factory=RetrievalScores)
    sentences: SentenceVectors = SentenceVectors()


@dataclass(frozen=True, slots=True)
class IndexManifest:
    """What an index was built with; a mismatch is refused, never mixed."""

    embedder_fingerprint: str
    dimension: int
    analyser_fingerprint: str
    schema: int
    average_terms: float  # the average length (terms) used in the stored BM25 values


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    model_id: str
    fingerprint: str  # sha256 over the model's files and the pooling settings
    dimension: int
    max_tokens: int  # including special tokens
