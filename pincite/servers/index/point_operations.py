"""What the endpoints about points do: write, read, scroll, count, facet, query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.call import Call, updated
from pincite.servers.index.collection import SLICE_POINTS, Collection
from pincite.servers.index.errors import (
    BadRequest,
    UnknownPoint,
    UnsupportedEndpoint,
    UnsupportedField,
    reading_values,
)
from pincite.servers.index.filters import edge_filter
from pincite.servers.index.points import (
    PointId,
    check_payload,
    edge_id,
    edge_ids,
    edge_points,
    edge_vectors,
    payload_selector,
    vector_selector,
    wire_id,
    wire_record,
    wire_scored,
)
from pincite.servers.index.queries import QueryTranslator, positive

_MODES = {
    None: edge.UpdateMode.Upsert,
    wire.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
    wire.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
    wire.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
}
Update = edge.UpdateOperation


def _slices(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), SLICE_POINTS):
        yield items[start : start + SLICE_POINTS]


def upsert(call: Call) -> dict[str, Any]:
    """PUT /collections/{name}/points: list and batch shapes"""
    with call.store.use(call.name) as collection:
        points = edge_points(call.body, collection.schema)
        _require_some(points)
        condition = edge_filter(call.body.update_filter)
        mode = _MODES[call.body.update_mode]
        return updated(
            call,
            collection,
            [
                lambda part=part: Update.upsert_points(part, condition, mode)  # type: ignore[misc]
                for part in _slices(points)
            ],
        )


def delete_points(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/delete: by ids or by filter"""
    ids, condition = _selected(call.body)
    with call.store.use(call.name) as collection:
        if condition is not None:
            return updated(call, collection, [lambda: Update.delete_points_by_filter(condition)])
        return updated(call, collection, [lambda: Update.delete_points(ids)])


def _selected(body: Any) -> tuple[list[PointId], edge.Filter | None]:
    """The ids or the filter of a body that must have exactly one of the two."""
    points, condition = getattr(body, "points", None), getattr(body, "filter", None)
    if (points is None) == (condition is None):
        raise BadRequest(
            "Wrong input: Either list of point ids or filter must be provided, and not both"
        )
    if points is not None:
        _require_some(points)
    return edge_ids(points or []), edge_filter(condition)


def _require_some(items: Sequence[Any]) -> None:
    if not items:
        raise BadRequest("Wrong input: Empty update request")


def _change(
    call: Call,
    collection: Collection,
    by_ids: Callable[[list[PointId]], edge.UpdateOperation],
    by_filter: Callable[[edge.Filter], edge.UpdateOperation],
) -> dict[str, Any]:
    """An update of points that must exist when they are named by id."""
    ids, condition = _selected(call.body)
    if condition is not None:
        return updated(call, collection, [lambda: by_filter(condition)])
    return updated(call, collection, [lambda: by_ids(ids)], existing=ids)


def set_payload(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/payload"""
    payload, key = call.body.payload, call.body.key
    check_payload(payload, above=0 if key is None else key.count(".") + key.count("[") + 1)
    with call.store.use(call.name) as collection:
        return _change(
            call,
            collection,
            lambda ids: Update.set_payload(ids, payload, key),
            lambda condition: Update.set_payload_by_filter(condition, payload, key),
        )


def overwrite_payload(call: Call) -> dict[str, Any]:
    """PUT /collections/{name}/points/payload"""
    payload = call.body.payload
    if call.body.key is not None:
        # The shard would replace the whole payload and forget about the key.
        raise UnsupportedField("Not supported by this server: `key` when overwriting a payload")
    check_payload(payload)
    with call.store.use(call.name) as collection:
        return _change(
            call,
            collection,
            lambda ids: Update.overwrite_payload(ids, payload),
            lambda condition: Update.overwrite_payload_by_filter(condition, payload),
        )


def delete_payload(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/payload/delete"""
    keys = call.body.keys
    with call.store.use(call.name) as collection:
        return _change(
            call,
            collection,
            lambda ids: Update.delete_payload(ids, keys),
            lambda condition: Update.delete_payload_by_filter(condition, keys),
        )


def clear_payload(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/payload/clear"""
    with call.store.use(call.name) as collection:
        return _change(call, collection, Update.clear_payload, Update.clear_payload_by_filter)


def update_vectors(call: Call) -> dict[str, Any]:
    """PUT /collections/{name}/points/vectors"""
    _require_some(call.body.points)
    with call.store.use(call.name) as collection:
        changes = [
            edge.PointVectors(edge_id(item.id), edge_vectors(item.vector, collection.schema))
            for item in call.body.points
        ]
        condition = edge_filter(call.body.update_filter)
        return updated(
            call,
            collection,
            [
                lambda part=part: Update.update_vectors(part, condition)  # type: ignore[misc]
                for part in _slices(changes)
            ],
            existing=[item.id for item in changes],
        )


def delete_vectors(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/vectors/delete"""
    names = call.body.vector
    _require_some(names)
    with call.store.use(call.name) as collection:
        for name in names:
            collection.schema.require(name)
        return _change(
            call,
            collection,
            lambda ids: Update.delete_vectors(ids, names),
            lambda condition: Update.delete_vectors_by_filter(condition, names),
        )


def retrieve(call: Call) -> list[dict[str, Any]]:
    """POST /collections/{name}/points"""
    with call.store.use(call.name) as collection:
        with_vector = vector_selector(call.body.with_vector, collection.schema)
        with_payload = payload_selector(call.body.with_payload, default=True)
        ids = edge_ids(call.body.ids)
        records = collection.read(lambda shard: shard.retrieve(ids, with_payload, with_vector))
        return [wire_record(record) for record in records]


def retrieve_one(call: Call) -> dict[str, Any]:
    """GET /collections/{name}/points/{id}"""
    text = call.path["id"]
    point_id = edge_id(int(text) if text.isdecimal() else text)
    with call.store.use(call.name) as collection:
        records = collection.read(lambda shard: shard.retrieve([point_id], True, True))
        if not records:
            raise UnknownPoint(point_id)
        return wire_record(records[0])


def scroll(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/scroll"""
    body: wire.ScrollRequest = call.body
    with call.store.use(call.name) as collection:
        request = edge.ScrollRequest(
            offset=None if body.offset is None else edge_id(body.offset),
            limit=min(positive(body.limit, "limit"), max(1, collection.count())),
            filter=edge_filter(body.filter),
            with_payload=payload_selector(body.with_payload, default=True),
            with_vector=vector_selector(body.with_vector, collection.schema),
        )
        records, following = collection.read(lambda shard: shard.scroll(request))
        return {
            "points": [wire_record(record) for record in records],
            "next_page_offset": wire_id(following),
        }


def count(call: Call) -> dict[str, int]:
    """POST /collections/{name}/points/count"""
    exact = call.body.exact is not False
    request = edge.CountRequest(exact=exact, filter=edge_filter(call.body.filter))
    with call.store.use(call.name) as collection:
        return {"count": collection.read(lambda shard: shard.count(request))}


def facet(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/facet: the key must have a payload index"""
    body: wire.FacetRequest = call.body
    with reading_values():
        request = edge.FacetRequest(
            key=body.key,
            limit=positive(body.limit, "limit"),
            exact=bool(body.exact),
            filter=edge_filter(body.filter),
        )
    with call.store.use(call.name) as collection:
        response = collection.read(lambda shard: shard.facet(request))
        return {
            "hits": [
                {"value": _facet_value(hit.value), "count": hit.count} for hit in response.hits
            ]
        }


def _facet_value(value: Any) -> Any:
    return value if isinstance(value, bool | int | str) else str(value)


def _translate(collection: Collection, bodies: list[wire.QueryRequest]) -> edge.QueryBatchRequest:
    translator = QueryTranslator(collection.schema, collection.count())
    with reading_values():
        return edge.QueryBatchRequest([translator.translate(body) for body in bodies])


def _found(collection: Collection, bodies: list[wire.QueryRequest]) -> list[dict[str, Any]]:
    request = _translate(collection, bodies)
    answers = collection.read(lambda shard: shard.query_batch(request))
    return [{"points": [wire_scored(point) for point in points]} for points in answers]


def query(call: Call) -> dict[str, Any]:
    """POST /collections/{name}/points/query"""
    with call.store.use(call.name) as collection:
        return _found(collection, [call.body])[0]


def query_batch(call: Call) -> list[dict[str, Any]]:
    """POST /collections/{name}/points/query/batch: one pass over the shard for all"""
    if not call.body.searches:
        return []
    with call.store.use(call.name) as collection:
        return _found(collection, call.body.searches)


def query_groups(_: Call) -> None:
    """POST /collections/{name}/points/query/groups"""
    raise UnsupportedEndpoint(
        "Not supported by this server: grouped queries (the edge library has none)"
    )
