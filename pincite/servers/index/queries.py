"""Queries: a (possibly nested) request of the client as one request of the edge library."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.errors import BadRequest, UnsupportedField
from pincite.servers.index.filters import edge_filter
from pincite.servers.index.points import (
    edge_vector,
    payload_selector,
    vector_selector,
)
from pincite.servers.index.schema import VectorSchema

DEFAULT_LIMIT: Final = 10
DEFAULT_RRF_K: Final = 2  # Qdrant's, with 1/(k + rank - 1): the k=60 of the paper is 61 here
MAX_PREFETCH_DEPTH: Final = 16

Request = wire.QueryRequest | wire.Prefetch


class QueryTranslator:
    """Translates queries against one collection.

    Args:
        schema: the vectors of the collection.
        num_points: points in the collection; limits are cut to it, so that a huge limit costs
            nothing and finds the same.
    """

    def __init__(self, schema: VectorSchema, num_points: int) -> None:
        self._schema = schema
        self._max_limit = max(1, num_points)

    def translate(self, request: wire.QueryRequest) -> edge.QueryRequest:
        """Raises BadRequest for what can never work, UnsupportedField for what is not honoured."""
        limit = positive(request.limit, "limit")
        offset = request.offset or 0
        if offset < 0:
            raise BadRequest("Wrong input: offset must not be negative")
        prefetches = self._prefetches(request, depth=1)
        return edge.QueryRequest(
            limit=min(limit, self._max_limit),
            offset=min(offset, self._max_limit),
            query=self._scoring(request, len(prefetches)),
            prefetches=prefetches,
            with_vector=vector_selector(request.with_vector, self._schema),
            with_payload=payload_selector(request.with_payload, default=False),
            filter=edge_filter(request.filter),
            score_threshold=request.score_threshold,
            params=self._params(request),
        )

    def _prefetches(self, request: Request, depth: int) -> list[edge.Prefetch]:
        given = request.prefetch
        if given is None:
            return []
        if depth > MAX_PREFETCH_DEPTH:
            raise BadRequest(f"Wrong input: prefetches nested deeper than {MAX_PREFETCH_DEPTH}")
        items = given if isinstance(given, list) else [given]
        return [self._prefetch(item, depth) for item in items]

    def _prefetch(self, request: wire.Prefetch, depth: int) -> edge.Prefetch:
        nested = self._prefetches(request, depth + 1)
        return edge.Prefetch(
            limit=min(positive(request.limit, "prefetch limit"), self._max_limit),
            query=self._scoring(request, len(nested)),
            prefetches=nested,
            params=self._params(request),
            filter=edge_filter(request.filter),
            score_threshold=request.score_threshold,
        )

    def _scoring(self, request: Request, num_prefetches: int) -> edge.ScoringQueryType | None:
        query = request.query
        if query is None:
            if num_prefetches:
                raise BadRequest("Wrong input: a query is needed to merge the prefetches")
            if request.score_threshold is not None or request.using is not None:
                raise BadRequest("Wrong input: score_threshold and using need a query")
            return None
        if isinstance(query, wire.FusionQuery | wire.RrfQuery):
            return self._fusion(request, query, num_prefetches)
        if isinstance(query, wire.NearestQuery):
            query = query.nearest
        return self._nearest(query, request.using or "")

    def _nearest(self, query: Any, using: str) -> edge.ScoringQueryType:
        if isinstance(query, int | str) or hasattr(query, "hex"):
            raise UnsupportedField("Not supported by this server: a point id as the query")
        return edge.Query.Nearest(edge_vector(query, using, self._schema), using or None)

    def _fusion(
        self, request: Request, query: wire.FusionQuery | wire.RrfQuery, num_prefetches: int
    ) -> edge.ScoringQueryType:
        if request.using is not None:
            raise BadRequest("Wrong input: a fusion query cannot have `using`")
        if num_prefetches == 0:
            raise BadRequest("Wrong input: a fusion query needs prefetches")
        fused: object
        if isinstance(query, wire.RrfQuery):
            k = DEFAULT_RRF_K if query.rrf.k is None else query.rrf.k
            fused = edge.Fusion.Rrf(positive(k, "rrf.k"), _weights(query.rrf, num_prefetches))
        elif query.fusion == wire.Fusion.RRF:
            fused = edge.Fusion.Rrf(DEFAULT_RRF_K)
        else:
            fused = edge.Fusion.Dbsf()
        return cast("edge.ScoringQueryType", fused)

    def _params(self, request: Request) -> edge.SearchParams | None:
        params = request.params
        if params is None:
            return None
        if request.query is None or isinstance(request.query, wire.FusionQuery | wire.RrfQuery):
            raise BadRequest("Wrong input: params belong to a query over one vector")
        return edge.SearchParams(
            hnsw_ef=None if params.hnsw_ef is None else positive(params.hnsw_ef, "hnsw_ef"),
            exact=bool(params.exact),
            idf=self._idf(params.idf, request.using or ""),
        )

    def _idf(self, given: Any, using: str) -> edge.IdfParams | None:
        if given is None:
            return None
        if not self._schema.sparse.get(using, False):
            raise BadRequest(f"Wrong input: vector `{using}` has no IDF modifier")
        return edge.IdfParams(edge_filter(getattr(given, "corpus", None)))


def _weights(rrf: wire.Rrf, num_prefetches: int) -> list[float] | None:
    weights = rrf.weights
    if weights is None:
        return None
    if len(weights) != num_prefetches:
        raise BadRequest(f"Wrong input: {len(weights)} rrf weights for {num_prefetches} prefetches")
    if any(not math.isfinite(weight) or weight < 0 for weight in weights):
        raise BadRequest("Wrong input: rrf weights must be finite and not negative")
    return weights


def positive(number: int | None, name: str) -> int:
    """A limit-like number, `DEFAULT_LIMIT` when absent. Raises BadRequest below 1."""
    value = DEFAULT_LIMIT if number is None else number
    if value < 1:
        raise BadRequest(f"Wrong input: {name} value {value} is invalid. Must be 1 or larger.")
    return value
