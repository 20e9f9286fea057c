"""Points: ids, vectors and payloads in both directions, checked before they reach a shard.

Every check here matters for durability, not only for manners: the edge library writes an update
to its log before it looks at it, and replays refused updates after a crash with another outcome
(a point with an unknown vector name comes back as an empty point; a payload nested deeper than
its JSON reader allows makes the whole shard unreadable). So nothing that it could refuse may
reach it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.errors import BadRequest, UnsupportedField, reading_values
from pincite.servers.index.schema import VectorSchema

MAX_PAYLOAD_DEPTH: Final = 64  # the edge library fails to read back about 127 and more
_MAX_UINT32: Final = 2**32 - 1
_MAX_UINT64: Final = 2**64 - 1
_MAX_FLOAT32: Final = 3.4028234663852886e38

PointId = int | UUID | str  # the edge library takes all three; ours are the first two


def edge_id(given: Any) -> PointId:
    """An unsigned integer or a UUID. Raises BadRequest for anything else."""
    if isinstance(given, UUID):
        return given
    if isinstance(given, int):
        if 0 <= given <= _MAX_UINT64:
            return given
    else:
        try:
            return UUID(given)
        except ValueError:
            pass
    raise BadRequest(
        f"Format error in JSON body: value {str(given)[:80]} is not a valid point ID, valid values "
        "are either an unsigned integer or a UUID"
    )


def edge_ids(given: Iterable[Any]) -> list[PointId]:
    """Several ids, see `edge_id`."""
    return [edge_id(item) for item in given]


def wire_id(point_id: Any) -> int | str | None:
    """An id as JSON has it."""
    return str(point_id) if isinstance(point_id, UUID) else point_id


def dense_vector(values: Any, name: str, schema: VectorSchema) -> list[float]:
    """Check a dense vector [size] of finite float32 numbers against the schema."""
    if name in schema.sparse:
        raise BadRequest(f"Wrong input: vector `{name}` is sparse, a dense one was given")
    schema.require(name)
    if not isinstance(values, list):
        raise UnsupportedField(f"Not supported by this server: {type(values).__name__} as a vector")
    if values and isinstance(values[0], list):
        raise UnsupportedField("Not supported by this server: multivectors")
    if len(values) != schema.dense[name]:
        raise BadRequest(
            f"Wrong input: Vector dimension error: expected dim: {schema.dense[name]}, "
            f"got {len(values)}"
        )
    _check_numbers(values, name)
    return values


def sparse_vector(given: wire.SparseVector, name: str, schema: VectorSchema) -> edge.SparseVector:
    """Check a sparse vector (unique uint32 indices, finite values) and sort it by index."""
    if name in schema.dense:
        raise BadRequest(f"Wrong input: vector `{name}` is dense, a sparse one was given")
    schema.require(name)
    indices, values = given.indices, given.values
    if len(indices) != len(values):
        raise BadRequest(f"Wrong input: vector `{name}`: indices and values differ in length")
    if len(set(indices)) != len(indices):
        raise BadRequest(f"Wrong input: vector `{name}`: indices must be unique")
    if indices and not (min(indices) >= 0 and max(indices) <= _MAX_UINT32):
        raise BadRequest(f"Wrong input: vector `{name}`: indices must fit 32 unsigned bits")
    _check_numbers(values, name)
    pairs = sorted(zip(indices, values, strict=True))
    return edge.SparseVector([index for index, _ in pairs], [value for _, value in pairs])


def _check_numbers(values: Sequence[float], name: str) -> None:
    if values and not (
        math.isfinite(sum(values)) and min(values) >= -_MAX_FLOAT32 and max(values) <= _MAX_FLOAT32
    ):
        raise BadRequest(f"Wrong input: vector `{name}` has values outside float32")


def edge_vectors(given: Any, schema: VectorSchema) -> dict[str, Any]:
    """The vectors of one point by name (the unnamed one is ""), checked against the schema."""
    named = given if isinstance(given, dict) else {"": given}
    return {name: edge_vector(value, name, schema) for name, value in named.items()}


def edge_vector(given: Any, name: str, schema: VectorSchema) -> Any:
    """One vector, dense or sparse by its shape."""
    if isinstance(given, wire.SparseVector):
        return sparse_vector(given, name, schema)
    return dense_vector(given, name, schema)


def check_payload(payload: Any, above: int = 0) -> None:
    """Raises BadRequest when a payload, put `above` levels deep, is nested beyond the limit."""
    level: list[Any] = [payload]
    for _ in range(MAX_PAYLOAD_DEPTH - above):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise BadRequest(f"Wrong input: payload nested deeper than {MAX_PAYLOAD_DEPTH} levels")


def edge_point(point_id: Any, vectors: Any, payload: Any, schema: VectorSchema) -> edge.Point:
    """One point, checked against the schema of its collection."""
    if payload is not None:
        check_payload(payload)
    checked = edge_vectors(vectors, schema)
    identifier = edge_id(point_id)
    with reading_values():
        return edge.Point(identifier, checked, payload)


def edge_points(body: wire.PointsList | wire.PointsBatch, schema: VectorSchema) -> list[edge.Point]:
    """All points of an upsert, in either of its two shapes. Raises BadRequest."""
    if isinstance(body, wire.PointsList):
        return [edge_point(p.id, p.vector, p.payload, schema) for p in body.points]
    return [edge_point(*row, schema) for row in _batch_rows(body.batch)]


def _batch_rows(batch: wire.Batch) -> Iterator[tuple[Any, Any, Any]]:
    num_points = len(batch.ids)
    vectors, payloads = batch.vectors, batch.payloads
    columns = vectors if isinstance(vectors, dict) else {"": vectors}
    lengths = {len(column) for column in columns.values()}
    if payloads is not None:
        lengths.add(len(payloads))
    if lengths - {num_points}:
        raise BadRequest("Wrong input: batch: ids, vectors and payloads differ in length")
    for row in range(num_points):
        named = {name: column[row] for name, column in columns.items()}
        yield batch.ids[row], named, None if payloads is None else payloads[row]


def wire_vectors(vectors: Any) -> Any:
    """Vectors read from a shard, as JSON has them."""
    if isinstance(vectors, dict):
        return {name: wire_vectors(vector) for name, vector in vectors.items()}
    if isinstance(vectors, edge.SparseVector):
        return {"indices": vectors.indices, "values": vectors.values}
    return vectors


def wire_record(record: edge.Record) -> dict[str, Any]:
    """A retrieved point as JSON has it."""
    return _without_absent(
        {
            "id": wire_id(record.id),
            "payload": record.payload,
            "vector": wire_vectors(record.vector),
        }
    )


def wire_scored(point: edge.ScoredPoint) -> dict[str, Any]:
    """A found point as JSON has it; its score is whatever the query asked for."""
    return _without_absent(
        {
            "id": wire_id(point.id),
            "version": point.version,
            "score": point.score,
            "payload": point.payload,
            "vector": wire_vectors(point.vector),
        }
    )


def _without_absent(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}


def payload_selector(given: Any, *, default: bool) -> edge.WithPayloadType:
    """`with_payload` in any of its shapes. Raises BadRequest for a path that cannot be read."""
    if given is None or isinstance(given, bool):
        return default if given is None else given
    with reading_values():
        if isinstance(given, wire.PayloadSelectorExclude):
            return edge.PayloadSelector.Exclude(given.exclude)
        paths = given.include if isinstance(given, wire.PayloadSelectorInclude) else given
        return edge.PayloadSelector.Include(paths)


def vector_selector(given: Any, schema: VectorSchema) -> edge.WithVectorType:
    """`with_vector`: all, none or some names. Raises BadRequest for a name not in the schema."""
    if given is None or isinstance(given, bool):
        return bool(given)
    for name in given:
        schema.require(name)
    return list(given)
