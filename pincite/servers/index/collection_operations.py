"""What the endpoints about collections, aliases and payload indexes do."""

from __future__ import annotations

from typing import Any, Final

import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.call import Call, updated
from pincite.servers.index.errors import BadRequest, reading_values
from pincite.servers.index.points import check_payload
from pincite.servers.index.schema import DEFAULT_HNSW, describe_index, payload_index
from pincite.servers.index.store import apply_alias_actions

# Past this many points without an HNSW graph, scanning starts to show (9 ms at 100k, 384 d).
COMFORTABLE_SCAN_POINTS: Final = 100_000


def create_collection(call: Call) -> bool:
    """PUT /collections/{name}"""
    if call.body.metadata is not None:
        check_payload(call.body.metadata)
    call.store.create(call.name, call.body)
    return True


def delete_collection(call: Call) -> bool:
    """DELETE /collections/{name}"""
    return call.store.delete(call.name)


def list_collections(call: Call) -> dict[str, Any]:
    """GET /collections"""
    return {"collections": [{"name": name} for name in call.store.names]}


def collection_exists(call: Call) -> dict[str, bool]:
    """GET /collections/{name}/exists"""
    return {"exists": call.store.has(call.name)}


def update_collection(call: Call) -> bool:
    """PATCH /collections/{name}: the metadata only"""
    if call.body.metadata is None:
        raise BadRequest("Wrong input: only `metadata` can be updated, and it was not given")
    check_payload(call.body.metadata)
    call.store.merge_metadata(call.name, call.body.metadata)
    return True


def get_collection(call: Call) -> dict[str, Any]:
    """GET /collections/{name}"""
    with call.store.use(call.name) as collection:
        info = collection.read(lambda shard: shard.info())
        num_points = collection.count()
        record = collection.record
        return {
            "status": "green",
            "optimizer_status": "ok",
            "warnings": _warnings(info, num_points),
            "indexed_vectors_count": info.indexed_vectors_count,
            "points_count": num_points,
            "segments_count": info.segments_count,
            "config": _config(record.config, call.store.metadata(call.name)),
            "payload_schema": {
                name: describe_index(index) for name, index in info.payload_schema.items()
            },
            "update_queue": {"length": 0},
            "created_at": record.created_at,
        }


def _warnings(info: edge.ShardInfo, num_points: int) -> list[dict[str, str]]:
    if num_points <= COMFORTABLE_SCAN_POINTS or info.segments_count > 1:
        return []
    return [
        {
            "message": f"{num_points} points are searched by scanning: above "
            f"{COMFORTABLE_SCAN_POINTS} run the index's maintenance while it is stopped, or use "
            "a Qdrant server"
        }
    ]


def _config(config: dict[str, Any], metadata: dict[str, Any] | None) -> dict[str, Any]:
    given = {name: config.get(name) or {} for name in ("hnsw_config", "optimizers_config")}
    return {
        "params": {
            "vectors": config.get("vectors", {}),
            "sparse_vectors": config.get("sparse_vectors"),
            "shard_number": 1,
            "replication_factor": 1,
            "write_consistency_factor": 1,
            "on_disk_payload": config.get("on_disk_payload", True),
        },
        "hnsw_config": {**DEFAULT_HNSW, "max_indexing_threads": 0, **given["hnsw_config"]},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
            **given["optimizers_config"],
        },
        "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
        "quantization_config": None,
        "metadata": metadata,
    }


def change_aliases(call: Call) -> bool:
    """POST /collections/aliases: all actions at once or none"""
    call.store.change_aliases(lambda state: apply_alias_actions(call.body.actions, state))
    return True


def list_aliases(call: Call) -> dict[str, Any]:
    """GET /aliases"""
    return _describe_aliases(call.store.aliases.items())


def list_collection_aliases(call: Call) -> dict[str, Any]:
    """GET /collections/{name}/aliases"""
    with call.store.use(call.name) as collection:
        name = collection.record.name
        return _describe_aliases(item for item in call.store.aliases.items() if item[1] == name)


def _describe_aliases(items: Any) -> dict[str, Any]:
    return {
        "aliases": [{"alias_name": alias, "collection_name": name} for alias, name in sorted(items)]
    }


def create_payload_index(call: Call) -> dict[str, Any]:
    """PUT /collections/{name}/index"""
    body: wire.CreateFieldIndex = call.body
    with reading_values():
        index = payload_index(body.field_schema)
    with call.store.use(call.name) as collection:
        return updated(
            call,
            collection,
            [lambda: edge.UpdateOperation.create_field_index(body.field_name, index)],
        )


def delete_payload_index(call: Call) -> dict[str, Any]:
    """DELETE /collections/{name}/index/{field}"""
    field = call.path["field_name"]
    with call.store.use(call.name) as collection:
        return updated(call, collection, [lambda: edge.UpdateOperation.delete_field_index(field)])
