"""A vector index in memory: exact search, and the faults a real one can have."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log1p

from core.domain.access import Principal
from core.domain.search import (
    Candidate,
    IndexManifest,
    IndexPoint,
    LegResults,
    SearchFilter,
    SparseVector,
)
from core.errors import IndexUnavailable, ManifestMismatch, NotPermitted
from core.ports.vector_index import Encode


class FakeVectorIndex:
    """Implements `core.ports.vector_index.VectorIndex`.

    `is_down`: every call raises. `before_upsert`: called before each batch is kept. `lose_next`:
    that many of the next points are acknowledged and forgotten."""

    def __init__(self) -> None:
        self.points: dict[str, dict[str, IndexPoint]] = {}  # tenant -> point id -> point
        self.is_down = False
        self.before_upsert: Callable[[Sequence[IndexPoint]], None] = lambda _points: None
        self.lose_next = 0
        self.num_upserts = 0
        self._manifest: IndexManifest | None = None
        self._lock = threading.Lock()

    def ensure(self, manifest: IndexManifest) -> IndexManifest:
        self._check()
        with self._lock:
            if self._manifest is None:
                self._manifest = manifest
            found = self._manifest
            if replace(manifest, average_terms=found.average_terms) != found:
                raise ManifestMismatch("the index was built with another embedder or analyser")
            return found

    def manifest(self) -> IndexManifest | None:
        self._check()
        return self._manifest

    def upsert(self, principal: Principal, points: Sequence[IndexPoint]) -> None:
        self._check()
        if self._manifest is None:
            raise IndexUnavailable("the index is not made yet")
        for point in points:
            if not principal.may_see(point.collection):
                raise NotPermitted(f"this key may not write to {point.collection}")
        self.before_upsert(points)
        with self._lock:
            self.num_upserts += 1
            kept = self.points.setdefault(principal.tenant_id, {})
            for point in points:
                if self.lose_next:
                    self.lose_next -= 1
                else:
                    kept[point.point_id] = point

    def count(self, principal: Principal, document_id: str, generation_id: str) -> int:
        self._check()
        return sum(
            (point.document_id, point.generation_id) == (document_id, generation_id)
            for point in self._of(principal)
        )

    def delete_generation(self, principal: Principal, document_id: str, generation_id: str) -> None:
        self._check()
        with self._lock:
            kept = self.points.get(principal.tenant_id, {})
            for point in list(kept.values()):
                if (point.document_id, point.generation_id) == (document_id, generation_id):
                    del kept[point.point_id]

    def search(
        self,
        principal: Principal,
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults:
        self._check()
        points = [point for point in self._of(principal) if _matches(principal, point, where)]
        by_dense = (
            [
                (sum(a * b for a, b in zip(dense, point.dense, strict=True)), point)
                for point in points
            ]
            if dense
            else []
        )
        by_lexical = self._lexical(points, lexical) if lexical else []
        return LegResults(_best(by_dense, limit), _best(by_lexical, limit))

    def generations(self, principal: Principal) -> Iterator[tuple[str, str]]:
        self._check()
        yield from sorted({(p.document_id, p.generation_id) for p in self._of(principal)})

    def reencode(self, principal: Principal, average_terms: float, encode: Encode) -> int:
        self._check()
        kept = self.points.get(principal.tenant_id, {})
        for point_id, point in list(kept.items()):
            chunk = point.chunk
            lexical = encode(chunk.index_text, chunk.language, average_terms)
            kept[point_id] = replace(point, lexical=lexical)
        if self._manifest is not None:
            self._manifest = replace(self._manifest, average_terms=average_terms)
        return len(kept)

    def _of(self, principal: Principal) -> list[IndexPoint]:
        with self._lock:
            return list(self.points.get(principal.tenant_id, {}).values())

    def _lexical(
        self, points: Sequence[IndexPoint], wanted: SparseVector
    ) -> list[tuple[float, IndexPoint]]:
        """Products with Lucene's IDF over all tenants' points; those without a common term drop."""
        with self._lock:
            everything = [point for kept in self.points.values() for point in kept.values()]
        holders = Counter(index for point in everything for index in point.lexical.indices)
        weights = {
            index: value * log1p((len(everything) - holders[index] + 0.5) / (holders[index] + 0.5))
            for index, value in zip(wanted.indices, wanted.values, strict=True)
        }
        found = []
        for point in points:
            terms = dict(zip(point.lexical.indices, point.lexical.values, strict=True))
            shared = terms.keys() & weights.keys()
            if shared:
                found.append((sum(terms[index] * weights[index] for index in shared), point))
        return found

    def _check(self) -> None:
        if self.is_down:
            raise IndexUnavailable("the index does not answer")


def _matches(principal: Principal, point: IndexPoint, where: SearchFilter) -> bool:
    return (
        principal.may_see(point.collection)
        and (not where.collections or point.collection in where.collections)
        and (not where.document_ids or point.document_id in where.document_ids)
        and point.generation_id not in where.excluded_generation_ids
    )


def _best(found: list[tuple[float, IndexPoint]], limit: int) -> tuple[Candidate, ...]:
    found.sort(key=lambda pair: (-pair[0], pair[1].point_id))
    return tuple(
        Candidate(
            point_id=point.point_id,
            document_id=point.document_id,
            generation_id=point.generation_id,
            collection=point.collection,
            title=point.title,
            chunk=point.chunk,
            leg_score=value,
            sentences=point.sentences,
        )
        for value, point in found[:limit]
    )
