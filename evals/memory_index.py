"""The product's search over a data set in memory: exact cosine, and the product's own BM25 vectors.

Only what `query.retrieval` calls: one tenant, no filters but excluded generations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.domain.access import Principal, Scope
from core.domain.documents import ActiveVersion
from core.domain.search import Candidate, LegResults, SearchFilter, SparseVector
from core.lexical.bm25 import count_terms, encode_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.ports.models import Embedder
    from evals.datasets import DataSet, EvalChunk

PRINCIPAL = Principal("evals", "evals", frozenset(Scope))
Vector = npt.NDArray[np.float32]


class MemoryIndex:
    """Dense and lexical legs over the chunks of one data set."""

    def __init__(self, data: DataSet, embedder: Embedder) -> None:
        self.data = data
        self.vectors: Vector = np.asarray(
            embedder.embed_passages([item.chunk.index_text for item in data.chunks]), np.float32
        )
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
        return tuple(self._candidate(self.data.chunks[i], float(scores[i])) for i in order)

    def _candidate(self, item: EvalChunk, leg_score: float) -> Candidate:
        return Candidate(
            item.point_id,
            item.document_id,
            item.generation_id,
            "evals",
            item.title,
            item.chunk,
            leg_score,
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
