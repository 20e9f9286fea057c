"""The table of endpoints: the whole HTTP surface beside health, version and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qdrant_client.http import models as wire

from pincite.servers.index import collection_operations as collections
from pincite.servers.index import point_operations as points
from pincite.servers.index.call import Call
from pincite.servers.index.requests import (
    CHANGE_PARAMETERS,
    READ_PARAMETERS,
    WRITE_PARAMETERS,
)

NO_PARAMETERS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Endpoint:
    """One row of the table.

    Attributes:
        method, path: as FastAPI wants them.
        perform: the operation; its name labels the metrics.
        body: the type of the body, None when there is none.
        parameters: the query parameters that are understood.
    """

    method: str
    path: str
    perform: Callable[[Call], Any]
    body: Any
    parameters: frozenset[str]

    @property
    def writes(self) -> bool:
        """Whether it changes points or payload indexes (timed as an update)."""
        return self.parameters is WRITE_PARAMETERS


_ONE: Final = "/collections/{collection_name}"
_POINTS: Final = f"{_ONE}/points"

ENDPOINTS: Final = (
    Endpoint("GET", "/collections", collections.list_collections, None, NO_PARAMETERS),
    Endpoint("GET", "/aliases", collections.list_aliases, None, NO_PARAMETERS),
    Endpoint(
        "POST",
        "/collections/aliases",
        collections.change_aliases,
        wire.ChangeAliasesOperation,
        CHANGE_PARAMETERS,
    ),
    Endpoint("PUT", _ONE, collections.create_collection, wire.CreateCollection, CHANGE_PARAMETERS),
    Endpoint("GET", _ONE, collections.get_collection, None, NO_PARAMETERS),
    Endpoint(
        "PATCH", _ONE, collections.update_collection, wire.UpdateCollection, CHANGE_PARAMETERS
    ),
    Endpoint("DELETE", _ONE, collections.delete_collection, None, CHANGE_PARAMETERS),
    Endpoint("GET", f"{_ONE}/exists", collections.collection_exists, None, NO_PARAMETERS),
    Endpoint("GET", f"{_ONE}/aliases", collections.list_collection_aliases, None, NO_PARAMETERS),
    Endpoint(
        "PUT",
        f"{_ONE}/index",
        collections.create_payload_index,
        wire.CreateFieldIndex,
        WRITE_PARAMETERS,
    ),
    Endpoint(
        "DELETE",
        f"{_ONE}/index/{{field_name:path}}",
        collections.delete_payload_index,
        None,
        WRITE_PARAMETERS,
    ),
    Endpoint("PUT", _POINTS, points.upsert, wire.PointInsertOperations, WRITE_PARAMETERS),
    Endpoint("POST", _POINTS, points.retrieve, wire.PointRequest, READ_PARAMETERS),
    Endpoint(
        "POST", f"{_POINTS}/delete", points.delete_points, wire.PointsSelector, WRITE_PARAMETERS
    ),
    Endpoint("POST", f"{_POINTS}/scroll", points.scroll, wire.ScrollRequest, READ_PARAMETERS),
    Endpoint("POST", f"{_POINTS}/count", points.count, wire.CountRequest, READ_PARAMETERS),
    Endpoint("POST", f"{_POINTS}/payload", points.set_payload, wire.SetPayload, WRITE_PARAMETERS),
    Endpoint(
        "PUT", f"{_POINTS}/payload", points.overwrite_payload, wire.SetPayload, WRITE_PARAMETERS
    ),
    Endpoint(
        "POST",
        f"{_POINTS}/payload/delete",
        points.delete_payload,
        wire.DeletePayload,
        WRITE_PARAMETERS,
    ),
    Endpoint(
        "POST",
        f"{_POINTS}/payload/clear",
        points.clear_payload,
        wire.PointsSelector,
        WRITE_PARAMETERS,
    ),
    Endpoint(
        "PUT", f"{_POINTS}/vectors", points.update_vectors, wire.UpdateVectors, WRITE_PARAMETERS
    ),
    Endpoint(
        "POST",
        f"{_POINTS}/vectors/delete",
        points.delete_vectors,
        wire.DeleteVectors,
        WRITE_PARAMETERS,
    ),
    Endpoint("POST", f"{_POINTS}/query", points.query, wire.QueryRequest, READ_PARAMETERS),
    Endpoint(
        "POST",
        f"{_POINTS}/query/batch",
        points.query_batch,
        wire.QueryRequestBatch,
        READ_PARAMETERS,
    ),
    Endpoint(
        "POST",
        f"{_POINTS}/query/groups",
        points.query_groups,
        Any,
        READ_PARAMETERS,
    ),
    Endpoint("GET", f"{_POINTS}/{{id}}", points.retrieve_one, None, READ_PARAMETERS),
    Endpoint("POST", f"{_ONE}/facet", points.facet, wire.FacetRequest, READ_PARAMETERS),
)
