"""What of Qdrant's request bodies is honoured, as data, and the check that refuses the rest.

Every request type is listed with the fields we honour. A field that is set, and is neither listed
nor set to a value that changes nothing on a single node, is refused by name; so is a type that is
not listed at all. Unknown keys never get this far: the client's own types forbid them.
`docs/api/index-subset.md` is generated from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from qdrant_client.http import models as wire

from pincite.servers.index.errors import UnsupportedField

BodyType = type[BaseModel]

_QUERY: Final = "query using filter prefetch params score_threshold limit"

HONOURED: Final[Mapping[BodyType, frozenset[str]]] = {
    body: frozenset(fields.split())
    for body, fields in (
        # collections
        (
            wire.CreateCollection,
            "vectors sparse_vectors on_disk_payload hnsw_config optimizers_config metadata",
        ),
        (wire.VectorParams, "size distance on_disk"),
        (wire.SparseVectorParams, "index modifier"),
        (wire.SparseIndexParams, "on_disk full_scan_threshold"),
        (
            wire.HnswConfigDiff,
            "m ef_construct full_scan_threshold max_indexing_threads on_disk payload_m",
        ),
        (
            wire.OptimizersConfigDiff,
            "deleted_threshold vacuum_min_vector_number default_segment_number max_segment_size "
            "indexing_threshold",
        ),
        (wire.UpdateCollection, "metadata"),
        (wire.ChangeAliasesOperation, "actions"),
        (wire.CreateAliasOperation, "create_alias"),
        (wire.CreateAlias, "collection_name alias_name"),
        (wire.DeleteAliasOperation, "delete_alias"),
        (wire.DeleteAlias, "alias_name"),
        (wire.RenameAliasOperation, "rename_alias"),
        (wire.RenameAlias, "old_alias_name new_alias_name"),
        # payload indexes
        (wire.CreateFieldIndex, "field_name field_schema"),
        (wire.KeywordIndexParams, "type is_tenant"),
        (wire.IntegerIndexParams, "type lookup range is_principal"),
        (wire.FloatIndexParams, "type is_principal"),
        (wire.BoolIndexParams, "type"),
        (wire.DatetimeIndexParams, "type is_principal"),
        (wire.UuidIndexParams, "type is_tenant"),
        (
            wire.TextIndexParams,
            "type tokenizer min_token_len max_token_len lowercase ascii_folding phrase_matching",
        ),
        # points
        (wire.PointsList, "points update_filter update_mode"),
        (wire.PointsBatch, "batch update_filter update_mode"),
        (wire.Batch, "ids vectors payloads"),
        (wire.PointStruct, "id vector payload"),
        (wire.SparseVector, "indices values"),
        (wire.PointIdsList, "points"),
        (wire.FilterSelector, "filter"),
        (wire.PointRequest, "ids with_payload with_vector"),
        (wire.ScrollRequest, "offset limit filter with_payload with_vector"),
        (wire.PayloadSelectorInclude, "include"),
        (wire.PayloadSelectorExclude, "exclude"),
        (wire.CountRequest, "filter exact"),
        (wire.FacetRequest, "key limit filter exact"),
        (wire.SetPayload, "payload points filter key"),
        (wire.DeletePayload, "keys points filter"),
        (wire.UpdateVectors, "points update_filter"),
        (wire.PointVectors, "id vector"),
        (wire.DeleteVectors, "points filter vector"),
        # queries
        (wire.QueryRequest, f"{_QUERY} offset with_payload with_vector"),
        (wire.QueryRequestBatch, "searches"),
        (wire.Prefetch, _QUERY),
        (wire.NearestQuery, "nearest"),
        (wire.FusionQuery, "fusion"),
        (wire.RrfQuery, "rrf"),
        (wire.Rrf, "k weights"),
        (wire.SearchParams, "hnsw_ef exact idf"),
        (wire.IdfCorpusParams, "corpus"),
        # filters
        (wire.Filter, "must should must_not min_should"),
        (wire.MinShould, "conditions min_count"),
        (wire.FieldCondition, "key match range is_empty is_null"),
        (wire.MatchValue, "value"),
        (wire.MatchAny, "any"),
        (wire.MatchExcept, "except_"),
        (wire.MatchText, "text"),
        (wire.MatchTextAny, "text_any"),
        (wire.MatchPhrase, "phrase"),
        (wire.Range, "lt gt gte lte"),
        (wire.DatetimeRange, "lt gt gte lte"),
        (wire.HasIdCondition, "has_id"),
        (wire.HasVectorCondition, "has_vector"),
        (wire.IsEmptyCondition, "is_empty"),
        (wire.IsNullCondition, "is_null"),
        (wire.PayloadField, "key"),
        (wire.NestedCondition, "nested"),
        (wire.Nested, "key filter"),
    )
}

# Values that a single unsharded, unreplicated, float32 node honours without doing anything.
TRIVIAL: Final[Mapping[tuple[BodyType, str], tuple[object, ...]]] = {
    (wire.CreateCollection, "shard_number"): (1,),
    (wire.CreateCollection, "sharding_method"): (wire.ShardingMethod.AUTO,),
    (wire.CreateCollection, "replication_factor"): (1,),
    (wire.CreateCollection, "write_consistency_factor"): (1,),
    (wire.VectorParams, "datatype"): (wire.Datatype.FLOAT32,),
    (wire.SparseIndexParams, "datatype"): (wire.Datatype.FLOAT32,),
    (wire.OptimizersConfigDiff, "prevent_unoptimized"): (False,),
    (wire.SearchParams, "indexed_only"): (False,),
}

# Free JSON of the client: nothing in it is a field of ours.
_OPAQUE: Final = frozenset({"payload", "payloads", "metadata"})


def refuse_unsupported(value: Any, path: str = "") -> None:
    """Walk a validated body. Raises UnsupportedField naming the first thing not honoured."""
    if isinstance(value, BaseModel):
        _refuse_fields(value, path)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            if isinstance(item, (float, int, str)):
                return  # a vector or a list of ids: one kind of scalar, nothing to look at
            refuse_unsupported(item, f"{path}[{position}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            refuse_unsupported(item, f"{path}.{key}" if path else str(key))


def _refuse_fields(body: BaseModel, path: str) -> None:
    honoured = HONOURED.get(type(body))
    if honoured is None:
        raise UnsupportedField(
            f"Not supported by this server: {type(body).__name__} at `{path or 'the body'}`",
            hint="docs/api/index-subset.md lists what the embedded index honours",
        )
    for name in body.model_fields_set:
        value = getattr(body, name)
        place = f"{path}.{name}" if path else name
        if value is None:
            continue
        if name in honoured:
            if name not in _OPAQUE:
                refuse_unsupported(value, place)
        elif value not in TRIVIAL.get((type(body), name), ()):
            raise UnsupportedField(
                f"Not supported by this server: `{place}` of {type(body).__name__}",
                hint="docs/api/index-subset.md lists what the embedded index honours",
            )
