"""Between our points, filters and candidates and what Qdrant stores. Knows no connection."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

from core.artifacts import chunk_from_json, chunk_to_json
from core.domain.search import Candidate, IndexManifest, SentenceVectors
from core.errors import IndexUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qdrant_client import models

    from core.domain.access import Principal
    from core.domain.search import IndexPoint, SearchFilter, SparseVector

DENSE = "dense"
LEXICAL = "lexical"
SHOWN = ("collection", "document", "generation", "title", "chunk", "sentences")
_MANIFEST = "pincite"  # our key in the qdrant collection's metadata
_KEYWORDS = ("collection", "document", "generation", "language", "tags")
_INTEGERS = ("page_start", "page_end")
_BYTES_PER_POINT = 200  # its id and the names of its fields
_BYTES_PER_NUMBER = 24  # of a float or an index as JSON writes it


def collection_name(alias: str, manifest: IndexManifest) -> str:
    """The qdrant collection of an (embedder, analyser, schema), so that another never meets it."""
    facts = [
        manifest.embedder_fingerprint,
        manifest.dimension,
        manifest.analyser_fingerprint,
        manifest.schema,
    ]
    return f"{alias}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]}"


def manifest_to_metadata(manifest: IndexManifest) -> dict[str, Any]:
    return {
        _MANIFEST: {
            "embedder_fingerprint": manifest.embedder_fingerprint,
            "dimension": manifest.dimension,
            "analyser_fingerprint": manifest.analyser_fingerprint,
            "schema": manifest.schema,
            "average_terms": manifest.average_terms,
        }
    }


def manifest_from_metadata(name: str, metadata: dict[str, Any] | None) -> IndexManifest:
    """Raises IndexUnavailable for a qdrant collection that is not ours."""
    try:
        told = (metadata or {})[_MANIFEST]
        return IndexManifest(
            embedder_fingerprint=str(told["embedder_fingerprint"]),
            dimension=int(told["dimension"]),
            analyser_fingerprint=str(told["analyser_fingerprint"]),
            schema=int(told["schema"]),
            average_terms=float(told["average_terms"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise IndexUnavailable(
            f"the qdrant collection {name} has no Pincite manifest",
            hint="it was made by something else: set index.alias to another name",
        ) from error


def payload_indexes() -> Iterator[
    tuple[str, models.KeywordIndexParams | models.IntegerIndexParams]
]:
    """(key, schema) of everything that is filtered by. The tenant comes first."""
    from qdrant_client import models

    keyword = models.KeywordIndexType.KEYWORD
    yield "tenant", models.KeywordIndexParams(type=keyword, is_tenant=True)
    for key in _KEYWORDS:
        yield key, models.KeywordIndexParams(type=keyword)
    for key in _INTEGERS:
        integer = models.IntegerIndexType.INTEGER
        yield key, models.IntegerIndexParams(type=integer, lookup=False, range=True)


def to_struct(principal: Principal, point: IndexPoint) -> models.PointStruct:
    """A point as Qdrant stores it; the tenant is the Principal's, whatever the point says."""
    from qdrant_client import models

    vectors: dict[str, Any] = {DENSE: list(point.dense)}
    if point.lexical.indices:
        vectors[LEXICAL] = to_sparse(point.lexical)
    pages = point.chunk.pages
    payload = {
        "tenant": principal.tenant_id,
        "collection": point.collection,
        "document": point.document_id,
        "generation": point.generation_id,
        "title": point.title,
        "language": point.chunk.language,
        "tags": [],
        "page_start": pages[0] if pages else 0,
        "page_end": pages[-1] if pages else 0,
        "chunk": chunk_to_json(point.chunk),
        "sentences": {
            "spans": [list(span) for span in point.sentences.spans],
            "rows": base64.b64encode(point.sentences.rows).decode(),
        },
    }
    return models.PointStruct(id=point.point_id, vector=vectors, payload=payload)


def to_sparse(vector: SparseVector) -> models.SparseVector:
    from qdrant_client import models

    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def to_candidate(point: models.ScoredPoint) -> Candidate:
    """Raises IndexUnavailable for a payload that we did not write."""
    payload = point.payload or {}
    try:
        return Candidate(
            point_id=str(point.id),
            document_id=payload["document"],
            generation_id=payload["generation"],
            collection=payload["collection"],
            title=payload["title"],
            chunk=chunk_from_json(payload["chunk"]),
            leg_score=float(point.score),
            sentences=_sentences(payload["sentences"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise IndexUnavailable(f"point {point.id} has a payload of another schema") from error


def _sentences(data: dict[str, Any]) -> SentenceVectors:
    spans = tuple((int(start), int(end)) for start, end in data["spans"])
    return SentenceVectors(spans, base64.b64decode(data["rows"]))


def in_request_sizes(
    structs: Iterable[models.PointStruct], *, max_points: int, max_bytes: int
) -> Iterator[list[models.PointStruct]]:
    """Groups that stay under both limits (a single larger point goes alone). Sizes are estimates
    of the JSON, from above for our payloads."""
    group: list[models.PointStruct] = []
    size = 0
    for struct in structs:
        grown = _json_bytes(struct)
        if group and (len(group) == max_points or size + grown > max_bytes):
            yield group
            group, size = [], 0
        group.append(struct)
        size += grown
    if group:
        yield group


def _json_bytes(struct: models.PointStruct) -> int:
    vectors = cast("dict[str, Any]", struct.vector)
    num_numbers = len(vectors[DENSE])
    if LEXICAL in vectors:
        num_numbers += 2 * len(vectors[LEXICAL].indices)
    return _BYTES_PER_POINT + _BYTES_PER_NUMBER * num_numbers + len(json.dumps(struct.payload))


def visible_to(
    principal: Principal, *, document_id: str | None = None, generation_id: str | None = None
) -> models.Filter:
    """What the Principal may touch, narrowed to a generation."""
    from qdrant_client import models

    must = _owned(principal)
    for key, value in (("document", document_id), ("generation", generation_id)):
        if value is not None:
            must.append(_equals(key, value))
    return models.Filter(must=must)


def search_filter(principal: Principal, where: SearchFilter) -> models.Filter | None:
    """The mandatory conditions and the caller's; None when nothing can match."""
    from qdrant_client import models

    allowed = principal.collections
    wanted: frozenset[str] | None = frozenset(where.collections) if where.collections else None
    if allowed is not None:
        wanted = allowed if wanted is None else wanted & allowed
    if wanted is not None and not wanted:
        return None
    must: list[models.Condition] = [_equals("tenant", principal.tenant_id)]
    if wanted is not None:
        must.append(_any_of("collection", sorted(wanted)))
    if where.document_ids:
        must.append(_any_of("document", where.document_ids))
    must_not: list[models.Condition] | None = None
    if where.excluded_generation_ids:
        must_not = [_any_of("generation", where.excluded_generation_ids)]
    return models.Filter(must=must, must_not=must_not)


def _owned(principal: Principal) -> list[models.Condition]:
    must: list[models.Condition] = [_equals("tenant", principal.tenant_id)]
    if principal.collections is not None:
        must.append(_any_of("collection", sorted(principal.collections)))
    return must


def _equals(key: str, value: str) -> models.FieldCondition:
    from qdrant_client import models

    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _any_of(key: str, values: Sequence[str]) -> models.FieldCondition:
    from qdrant_client import models

    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
