"""The product's search over a data set in memory: exact cosine, and the product's own BM25 vectors.

Only what `query.retrieval` calls: one tenant, no filters but excluded generations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.chunk_sentences import chunk_sentences
from core.domain.access import Principal, Scope
from core.domain.documents import ActiveVersion
from core.domain.search import (
    Candidate,
    LegResults,
    SearchFilter,
    SentenceVectors,
    SparseVector,
)
from core.lexical.bm25 import count_terms, encode_document
from core.sentence_vectors import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.ports.models import Embedder
    from evals.datasets import DataSet

PRINCIPAL = Principal("evals", "evals", frozenset(Scope))
Vector = npt.NDArray[np.float32]


class MemoryIndex:
    """Dense and lexical legs over the chunks of one data set.

    Without `has_vectors` nothing is embedded, and only the lexical leg finds anything; without
    `has_sentences` there is nothing to rerank by.
    """

    def __init__(
        self,
        data: DataSet,
        embedder: Embedder,
        *,
        has_vectors: bool = True,
        has_sentences: bool = True,
    ) -> None:
        self.data = data
        self._embedder = embedder
        self._sentences: dict[int, SentenceVectors] = {}
        self._has_sentences = has_vectors and has_sentences
        texts = [item.chunk.index_text for item in data.chunks] if has_vectors else []
        self.vectors: Vector = np.asarray(embedder.embed_passages(texts), np.float32)
        lengths = [count_terms(c.chunk.index_text, c.chunk.language) for c in data.chunks]
        average = sum(lengths) / len(lengths)
        self._postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for position, item in enumerate(data.chunks):
            encoded = encode_document(item.chunk.index_text, item.chunk.language, average)
            for index, value in zip(encoded.indices, encoded.values, strict=True):
                self._postings[index].append((position, value))
        self._generations = np.asarray([item.generation_id for item in data.chunks])
        self._order = np.argsort(np.argsort([item.point_id for item in data.chunks]))

    def search(
        self,
        principal: Principal,  # noqa: ARG002
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults:
        excluded = np.isin(self._generations, np.asarray(where.excluded_generation_ids))
        dense_scores: Vector | None = None
        if dense is not None and len(dense):
            dense_scores = self.vectors @ np.asarray(dense, np.float32)
        return LegResults(
            self._top(dense_scores, excluded, limit, above=-2.0),
            self._top(self._bm25(lexical), excluded, limit, above=0.0),
        )

    def _bm25(self, lexical: SparseVector | None) -> Vector | None:
        if lexical is None:
            return None
        found = np.zeros(len(self.data.chunks), np.float32)
        for index, count in zip(lexical.indices, lexical.values, strict=True):
            postings = self._postings.get(index, ())
            frequency = len(postings)
            idf = math.log1p((len(found) - frequency + 0.5) / (frequency + 0.5))
            for position, value in postings:
                found[position] += count * value * idf
        return found

    def _top(
        self, scores: Vector | None, excluded: npt.NDArray[np.bool_], limit: int, *, above: float
    ) -> tuple[Candidate, ...]:
        if scores is None:
            return ()
        allowed = np.flatnonzero(~excluded & (scores > above))
        order = allowed[np.lexsort((self._order[allowed], -scores[allowed]))][:limit]
        self._embed_sentences([int(position) for position in order])
        return tuple(self._candidate(int(i), float(scores[i])) for i in order)

    def _embed_sentences(self, positions: Sequence[int]) -> None:
        """Those of chunks that were not found before: most chunks of a large set never are."""
        missing = [position for position in positions if position not in self._sentences]
        if not self._has_sentences:
            self._sentences.update(dict.fromkeys(missing, SentenceVectors()))
            return
        pieces = [chunk_sentences(self.data.chunks[position].chunk) for position in missing]
        texts = [piece.embedded_text for found in pieces for piece in found]
        vectors = iter(self._embedder.embed_passages(texts) if texts else [])
        for position, found in zip(missing, pieces, strict=True):
            self._sentences[position] = pack(
                [(piece.start, piece.end) for piece in found], [next(vectors) for _ in found]
            )

    def _candidate(self, position: int, leg_score: float) -> Candidate:
        item = self.data.chunks[position]
        return Candidate(
            item.point_id,
            item.document_id,
            item.generation_id,
            "evals",
            item.title,
            item.chunk,
            leg_score,
            self._sentences[position],
        )


class EverythingActive:
    """The part of a catalog snapshot that retrieval uses; every generation is visible."""

    def active(self, generation_ids: Sequence[str]) -> dict[str, ActiveVersion]:
        return {
            name: ActiveVersion(
                generation_id=name,
                document_id=name,
                version_seq=1,
                sha256="0" * 64,
                title="",
                collection="evals",
                bucket="evals",
                key=name,
                page_count=1,
                etag="",
                parser_fingerprint="evals",
            )
            for name in generation_ids
        }
