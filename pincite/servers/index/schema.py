"""A collection's vectors and payload indexes: from the client's types to the edge library's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.errors import BadRequest, UnsupportedField

# Qdrant keeps vectors in folders named after them, and refuses these characters in names.
_FORBIDDEN_IN_NAMES: Final = frozenset('<>:"/\\|?*\0\x1f')
_MAX_NAME: Final = 255
_MAX_VECTOR_NAME_BYTES: Final = 200
_MAX_VECTOR_SIZE: Final = 65536

# Qdrant's own defaults; the edge library wants all three or none.
DEFAULT_HNSW: Final = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}

_DISTANCES: Final = {
    wire.Distance.COSINE: edge.Distance.Cosine,
    wire.Distance.EUCLID: edge.Distance.Euclid,
    wire.Distance.DOT: edge.Distance.Dot,
    wire.Distance.MANHATTAN: edge.Distance.Manhattan,
}
_TOKENIZERS: Final = {
    wire.TokenizerType.PREFIX: edge.TokenizerType.Prefix,
    wire.TokenizerType.WHITESPACE: edge.TokenizerType.Whitespace,
    wire.TokenizerType.WORD: edge.TokenizerType.Word,
    wire.TokenizerType.MULTILINGUAL: edge.TokenizerType.Multilingual,
}


@dataclass(frozen=True)
class VectorSchema:
    """The vectors that points of one collection may carry.

    Attributes:
        dense: name -> size; the unnamed vector is "".
        sparse: name -> whether its query values are multiplied by IDF.
    """

    dense: Mapping[str, int]
    sparse: Mapping[str, bool]

    def require(self, name: str) -> None:
        """Raises BadRequest when no vector has this name."""
        if name not in self.dense and name not in self.sparse:
            raise BadRequest(f"Wrong input: Not existing vector name error: {name}")


def check_collection_name(name: str) -> None:
    """Raises BadRequest for a name that a Qdrant server would refuse to create."""
    if name in ("", ".", "..") or len(name) > _MAX_NAME or _FORBIDDEN_IN_NAMES & set(name):
        raise BadRequest(
            f"Wrong input: invalid collection name {name[:80]!r}: 1 to {_MAX_NAME} characters, "
            'without < > : " / \\ | ? * or control characters'
        )


def vector_schema(config: wire.CreateCollection) -> VectorSchema:
    """The vectors of a CreateCollection body. Raises BadRequest for names or sizes out of range."""
    dense = {name: params.size for name, params in _dense(config).items()}
    sparse = {
        name: params.modifier == wire.Modifier.IDF
        for name, params in (config.sparse_vectors or {}).items()
    }
    for name in (*dense, *sparse):
        too_long = len(name.encode("utf-8")) > _MAX_VECTOR_NAME_BYTES
        if too_long or name in (".", "..") or _FORBIDDEN_IN_NAMES & set(name):
            raise BadRequest(f"Wrong input: invalid vector name {name[:80]!r}")
    for name, size in dense.items():
        if not 1 <= size <= _MAX_VECTOR_SIZE:
            raise BadRequest(
                f"Wrong input: vector `{name}` has size {size}, must be 1 to {_MAX_VECTOR_SIZE}"
            )
    if dense.keys() & sparse.keys():
        raise BadRequest("Wrong input: a dense and a sparse vector share a name")
    if not dense and not sparse:
        raise BadRequest("Wrong input: a collection needs at least one vector")
    return VectorSchema(dense, sparse)


def edge_config(config: wire.CreateCollection, search_threads: int | None) -> edge.EdgeConfig:
    """The shard configuration of a CreateCollection body (already checked by `vector_schema`)."""
    sparse = {name: _sparse_params(p) for name, p in (config.sparse_vectors or {}).items()}
    hnsw = config.hnsw_config
    optimizers = config.optimizers_config
    return edge.EdgeConfig(
        vectors={name: _dense_params(params) for name, params in _dense(config).items()} or None,
        sparse_vectors=sparse or None,
        hnsw_config=None if hnsw is None else _hnsw(hnsw),
        optimizers=None if optimizers is None else _optimizers(optimizers),
        max_search_threads=search_threads,
        payload_memory=_memory(config.on_disk_payload, edge.Memory.Cached),
    )


def _dense(config: wire.CreateCollection) -> dict[str, wire.VectorParams]:
    vectors = config.vectors
    if vectors is None:
        return {}
    return {"": vectors} if isinstance(vectors, wire.VectorParams) else dict(vectors)


def _memory(on_disk: bool | None, in_memory: edge.Memory) -> edge.Memory | None:
    if on_disk is None:
        return None
    return edge.Memory.Cold if on_disk else in_memory


def _dense_params(params: wire.VectorParams) -> edge.EdgeVectorParams:
    return edge.EdgeVectorParams(
        size=params.size,
        distance=_DISTANCES[params.distance],
        memory=_memory(params.on_disk, edge.Memory.Cached),
    )


def _sparse_params(params: wire.SparseVectorParams) -> edge.EdgeSparseVectorParams:
    index = params.index or wire.SparseIndexParams()
    return edge.EdgeSparseVectorParams(
        full_scan_threshold=index.full_scan_threshold,
        modifier=edge.Modifier.Idf if params.modifier == wire.Modifier.IDF else None,
        memory=_memory(index.on_disk, edge.Memory.Pinned),
    )


def _hnsw(diff: wire.HnswConfigDiff) -> edge.HnswIndexConfig:
    given = {name: getattr(diff, name) for name in DEFAULT_HNSW}
    filled = {name: DEFAULT_HNSW[name] if given[name] is None else given[name] for name in given}
    if filled["m"] < 0 or filled["ef_construct"] < 4 or filled["full_scan_threshold"] < 0:
        raise BadRequest("Wrong input: hnsw_config: m >= 0, ef_construct >= 4, threshold >= 0")
    return edge.HnswIndexConfig(
        m=filled["m"],
        ef_construct=filled["ef_construct"],
        full_scan_threshold=filled["full_scan_threshold"],
        max_indexing_threads=diff.max_indexing_threads or 0,
        payload_m=diff.payload_m,
        memory=_memory(diff.on_disk, edge.Memory.Cached),
    )


def _optimizers(diff: wire.OptimizersConfigDiff) -> edge.EdgeOptimizersConfig:
    return edge.EdgeOptimizersConfig(
        deleted_threshold=diff.deleted_threshold,
        vacuum_min_vector_number=diff.vacuum_min_vector_number,
        default_segment_number=diff.default_segment_number,
        max_segment_size=diff.max_segment_size,
        indexing_threshold=diff.indexing_threshold,
    )


def _text_index(params: wire.TextIndexParams) -> edge.TextIndexParams:
    tokenizer = params.tokenizer
    if tokenizer is not None and tokenizer not in _TOKENIZERS:
        raise UnsupportedField(f"Not supported by this server: tokenizer `{tokenizer.value}`")
    return edge.TextIndexParams(
        tokenizer=None if tokenizer is None else _TOKENIZERS[tokenizer],
        min_token_len=params.min_token_len,
        max_token_len=params.max_token_len,
        lowercase=params.lowercase,
        ascii_folding=params.ascii_folding,
        phrase_matching=params.phrase_matching,
    )


_INDEXES: Final[dict[wire.PayloadSchemaType, Callable[[Any], edge.PayloadSchemaParams]]] = {
    wire.PayloadSchemaType.KEYWORD: lambda p: edge.KeywordIndexParams(is_tenant=p.is_tenant),
    wire.PayloadSchemaType.INTEGER: lambda p: edge.IntegerIndexParams(
        lookup=p.lookup, range=p.range, is_principal=p.is_principal
    ),
    wire.PayloadSchemaType.FLOAT: lambda p: edge.FloatIndexParams(is_principal=p.is_principal),
    wire.PayloadSchemaType.BOOL: lambda _: edge.BoolIndexParams(),
    wire.PayloadSchemaType.DATETIME: lambda p: edge.DatetimeIndexParams(
        is_principal=p.is_principal
    ),
    wire.PayloadSchemaType.UUID: lambda p: edge.UuidIndexParams(is_tenant=p.is_tenant),
    wire.PayloadSchemaType.TEXT: _text_index,
}
_BARE: Final[dict[wire.PayloadSchemaType, Any]] = {
    wire.PayloadSchemaType.KEYWORD: wire.KeywordIndexParams(type=wire.KeywordIndexType.KEYWORD),
    wire.PayloadSchemaType.INTEGER: wire.IntegerIndexParams(type=wire.IntegerIndexType.INTEGER),
    wire.PayloadSchemaType.FLOAT: wire.FloatIndexParams(type=wire.FloatIndexType.FLOAT),
    wire.PayloadSchemaType.BOOL: wire.BoolIndexParams(type=wire.BoolIndexType.BOOL),
    wire.PayloadSchemaType.DATETIME: wire.DatetimeIndexParams(type=wire.DatetimeIndexType.DATETIME),
    wire.PayloadSchemaType.UUID: wire.UuidIndexParams(type=wire.UuidIndexType.UUID),
    wire.PayloadSchemaType.TEXT: wire.TextIndexParams(type=wire.TextIndexType.TEXT),
}


def payload_index(field_schema: Any) -> edge.PayloadSchemaParams:
    """The edge index of a `field_schema` (a type name or its parameters).

    Raises BadRequest when it is missing, UnsupportedField for geo and the code tokenizer.
    """
    if field_schema is None:
        raise BadRequest("Wrong input: field_schema is required")
    params = _BARE.get(field_schema) if isinstance(field_schema, wire.PayloadSchemaType) else None
    params = params or field_schema
    kind = wire.PayloadSchemaType(getattr(params, "type", params))
    if kind not in _INDEXES:
        raise UnsupportedField(f"Not supported by this server: a payload index of type {kind}")
    return _INDEXES[kind](params)


def describe_index(info: edge.PayloadIndexInfo) -> dict[str, Any]:
    """A payload index as `GET /collections/{name}` shows it."""
    kind = str(info.data_type).rsplit(".", 1)[-1].lower()
    params: dict[str, Any] = {"type": kind}
    for name in ("is_tenant", "is_principal", "lookup", "range", "lowercase", "ascii_folding",
                 "phrase_matching", "min_token_len", "max_token_len"):  # fmt: skip
        value = getattr(info.params, name, None)
        if value is not None:
            params[name] = value
    tokenizer = getattr(info.params, "tokenizer", None)
    if tokenizer is not None:
        params["tokenizer"] = str(tokenizer).rsplit(".", 1)[-1].lower()
    return {"data_type": kind, "params": params, "points": info.points}
