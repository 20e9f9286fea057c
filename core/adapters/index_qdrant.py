"""The vector index on a Qdrant server, always by URL: our embedded owner or a real one.

One qdrant collection per (embedder, analyser, schema) behind the alias of the settings, with its
manifest in the collection's metadata. Every request carries the Principal's tenant and collections
as a filter, built here. All writes may be repeated: ids are derived from what is written.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.adapters import qdrant_payload as payloads
from core.adapters.qdrant_connection import NotThere, QdrantConnection
from core.domain.search import LegResults
from core.errors import IndexUnavailable, ManifestMismatch, NotPermitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from qdrant_client import QdrantClient, models

    from core.domain.access import Principal
    from core.domain.search import (
        Candidate,
        IndexManifest,
        IndexPoint,
        SearchFilter,
        SparseVector,
    )
    from core.ports.vector_index import Encode
    from core.settings import IndexSettings

_MAX_REQUEST_BYTES = 4_500_000  # under 5 MB with its envelope
_SCROLL_POINTS = 1_000
_REENCODE_POINTS = 128


class QdrantIndex:
    """Implements `core.ports.vector_index.VectorIndex`; safe in threads, not across a fork.

    Args:
        settings: where the server is, its key, the alias, request sizes.
        sleep: waits between the two quick retries.
    """

    def __init__(
        self, settings: IndexSettings, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._alias = settings.alias
        self._max_points = settings.upsert_points
        self._connection = QdrantConnection(settings, sleep)
        self._call = self._connection.call

    def ensure(self, manifest: IndexManifest) -> IndexManifest:
        found = self.manifest()
        if found is None:
            self._create(manifest)
            found = self.manifest()
        if found is None:
            raise IndexUnavailable(f"the index lost its alias {self._alias} while it was made")
        if replace(found, average_terms=manifest.average_terms) != manifest:
            raise ManifestMismatch(
                "the index was built with another embedder, analyser or schema",
                hint="use the former embedder, or set index.alias to a new name and ingest anew",
                found=found,
                wanted=manifest,
            )
        return found

    def manifest(self) -> IndexManifest | None:
        try:
            info = self._call(lambda client: client.get_collection(self._alias))
        except NotThere:
            return None
        return payloads.manifest_from_metadata(self._alias, info.config.metadata)

    def upsert(self, principal: Principal, points: Sequence[IndexPoint]) -> None:
        for point in points:
            if not principal.may_see(point.collection):
                raise NotPermitted(f"this key may not write to the collection {point.collection}")
        groups = payloads.in_request_sizes(
            (payloads.to_struct(principal, point) for point in points),
            max_points=self._max_points,
            max_bytes=_MAX_REQUEST_BYTES,
        )
        for group in groups:
            self._upsert_group(group)

    def count(self, principal: Principal, document_id: str, generation_id: str) -> int:
        wanted = payloads.visible_to(
            principal, document_id=document_id, generation_id=generation_id
        )
        try:
            return self._call(
                lambda client: client.count(self._alias, count_filter=wanted, exact=True).count
            )
        except NotThere:
            return 0

    def delete_generation(self, principal: Principal, document_id: str, generation_id: str) -> None:
        from qdrant_client import models

        selector = models.FilterSelector(
            filter=payloads.visible_to(
                principal, document_id=document_id, generation_id=generation_id
            )
        )
        try:
            self._call(lambda client: client.delete(self._alias, selector, wait=True))
        except NotThere:
            return

    def search(
        self,
        principal: Principal,
        *,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        limit: int,
        where: SearchFilter,
    ) -> LegResults:
        vectors: dict[str, Any] = {}
        if dense:
            vectors[payloads.DENSE] = list(dense)
        if lexical is not None and lexical.indices:
            vectors[payloads.LEXICAL] = payloads.to_sparse(lexical)
        conditions = payloads.search_filter(principal, where)
        if conditions is None or not vectors:
            return LegResults()
        requests = [_leg(name, vector, conditions, limit) for name, vector in vectors.items()]
        try:
            answers = self._call(lambda client: client.query_batch_points(self._alias, requests))
        except NotThere:
            return LegResults()
        legs = {
            name: _best_first(answer.points) for name, answer in zip(vectors, answers, strict=True)
        }
        return LegResults(
            dense=legs.get(payloads.DENSE, ()), lexical=legs.get(payloads.LEXICAL, ())
        )

    def generations(self, principal: Principal) -> Iterator[tuple[str, str]]:
        seen: set[tuple[str, str]] = set()
        for record in self._scroll(principal, ["document", "generation"], _SCROLL_POINTS):
            payload = record.payload or {}
            pair = (str(payload.get("document")), str(payload.get("generation")))
            if pair not in seen:
                seen.add(pair)
                yield pair

    def reencode(self, principal: Principal, average_terms: float, encode: Encode) -> int:
        manifest = self.manifest()
        if manifest is None:
            raise _not_made(self._alias)
        num_points = 0
        batch: list[models.PointVectors] = []
        for record in self._scroll(principal, ["chunk", "language"], _REENCODE_POINTS):
            batch += _reencoded(record, average_terms, encode)
            if len(batch) == _REENCODE_POINTS:
                num_points += self._update_vectors(batch)
                batch = []
        num_points += self._update_vectors(batch)
        changed = payloads.manifest_to_metadata(replace(manifest, average_terms=average_terms))
        self._call(lambda client: client.update_collection(self._alias, metadata=changed))
        return num_points

    def close(self) -> None:
        """End the connections; the next call makes new ones."""
        self._connection.close()

    def _create(self, manifest: IndexManifest) -> None:
        """Collection, payload indexes and alias; each step may find that another process was
        first, or that we were, before a crash."""
        from qdrant_client import models

        name = payloads.collection_name(self._alias, manifest)
        if not self._call(lambda client: client.collection_exists(name)):
            try:
                self._call(lambda client: _create_collection(client, name, manifest))
            except IndexUnavailable as error:
                if not error.context.get("is_conflict"):
                    raise
        for key, schema in payloads.payload_indexes():
            self._create_payload_index(name, key, schema)
        alias = models.CreateAlias(collection_name=name, alias_name=self._alias)
        action = models.CreateAliasOperation(create_alias=alias)
        self._call(lambda client: client.update_collection_aliases([action]))

    def _create_payload_index(
        self, name: str, key: str, schema: models.KeywordIndexParams | models.IntegerIndexParams
    ) -> None:
        self._call(lambda client: client.create_payload_index(name, key, schema, wait=True))

    def _upsert_group(self, group: list[models.PointStruct]) -> None:
        try:
            self._call(lambda client: client.upsert(self._alias, group, wait=True))
        except NotThere as error:
            raise _not_made(self._alias) from error

    def _scroll(
        self, principal: Principal, keys: list[str], page_size: int
    ) -> Iterator[models.Record]:
        """All points the Principal may touch, by id, with these payload keys and no vectors."""
        conditions = payloads.visible_to(principal)

        def read_page(offset: Any) -> tuple[list[models.Record], Any]:
            return self._call(
                lambda client: client.scroll(
                    self._alias,
                    scroll_filter=conditions,
                    limit=page_size,
                    offset=offset,
                    with_payload=keys,
                    with_vectors=False,
                )
            )

        offset: Any = None
        while True:
            try:
                records, offset = read_page(offset)
            except NotThere:
                return
            yield from records
            if offset is None:
                return

    def _update_vectors(self, batch: Sequence[models.PointVectors]) -> int:
        """Write new vectors; points that were deleted meanwhile are left out."""
        if not batch:
            return 0
        try:
            self._call(lambda client: client.update_vectors(self._alias, batch, wait=True))
        except NotThere:
            left = self._existing([item.id for item in batch])
            if len(left) == len(batch):
                raise
            return self._update_vectors([item for item in batch if item.id in left])
        return len(batch)

    def _existing(self, ids: list[Any]) -> set[Any]:
        records = self._call(
            lambda client: client.retrieve(self._alias, ids, with_payload=False, with_vectors=False)
        )
        return {record.id for record in records}


def _create_collection(client: QdrantClient, name: str, manifest: IndexManifest) -> None:
    from qdrant_client import models

    client.create_collection(
        name,
        vectors_config={
            payloads.DENSE: models.VectorParams(
                size=manifest.dimension, distance=models.Distance.COSINE
            )
        },
        sparse_vectors_config={
            payloads.LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)
        },
        metadata=payloads.manifest_to_metadata(manifest),
    )


def _leg(name: str, vector: Any, conditions: models.Filter, limit: int) -> models.QueryRequest:
    from qdrant_client import models

    return models.QueryRequest(
        query=vector,
        using=name,
        filter=conditions,
        limit=limit,
        with_payload=models.PayloadSelectorInclude(include=list(payloads.SHOWN)),
    )


def _best_first(points: Sequence[models.ScoredPoint]) -> tuple[Candidate, ...]:
    candidates = [payloads.to_candidate(point) for point in points]
    return tuple(sorted(candidates, key=lambda c: (-c.leg_score, c.point_id)))


def _reencoded(
    record: models.Record, average_terms: float, encode: Encode
) -> list[models.PointVectors]:
    """The point's new lexical vector; nothing for a text without terms, which has none."""
    from qdrant_client import models

    payload = record.payload or {}
    vector = encode(payload["chunk"]["index_text"], payload["language"], average_terms)
    if not vector.indices:
        return []
    sparse = payloads.to_sparse(vector)
    return [models.PointVectors(id=record.id, vector={payloads.LEXICAL: sparse})]


def _not_made(alias: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"the index has no alias {alias} yet", hint="it is made when the first document is indexed"
    )
