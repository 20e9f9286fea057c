"""The client calls whose requests are recorded: every endpoint of the subset, in a fixed order.

`record.py` runs them against a capturing transport and keeps what the client sent. The test
replays that over plain HTTP and compares each answer with what the same call returns in the
client's local mode. The data is tiny and has no ties, so answers can be compared as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from qdrant_client import QdrantClient, models

Call = Callable[[QdrantClient], Any]

NAME = "chunks_v1"
NEXT = "chunks_v2"
ALIAS = "chunks"
IDS: list[Any] = [
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0001",
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0002",
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0003",
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0004",
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0005",
    "0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0006",
]
DENSE: list[Any] = [
    [0.9, 0.1, 0.2, 0.4],
    [0.1, 0.8, 0.3, 0.1],
    [0.4, 0.4, 0.7, 0.2],
    [0.2, 0.3, 0.1, 0.9],
    [0.7, 0.6, 0.1, 0.1],
    [0.3, 0.2, 0.8, 0.5],
]
SPARSE = [
    ([1, 4, 7], [1.2, 0.5, 0.9]),
    ([2, 4], [0.7, 1.1]),
    ([1, 3, 9], [0.4, 1.3, 0.6]),
    ([4, 8], [0.3, 0.8]),
    ([1, 2, 8], [0.9, 0.2, 1.4]),
    ([3, 7], [1.6, 0.1]),
]
QUESTION = [0.5, 0.5, 0.4, 0.1]
TERMS = models.SparseVector(indices=[1, 4, 8], values=[1.0, 1.0, 2.0])


@dataclass(frozen=True)
class Step:
    """One call; `area` is the file that its request is kept in."""

    area: str
    name: str
    call: Call


def vectors(number: int) -> dict[str, Any]:
    indices, values = SPARSE[number]
    return {
        "dense": DENSE[number],
        "lexical": models.SparseVector(indices=indices, values=values),
    }


def payload(number: int) -> dict[str, Any]:
    return {
        "tenant": "ten_a" if number < 4 else "ten_b",
        "collection": ["manuals", "contracts"][number % 2],
        "document": f"doc_{number // 2}",
        "generation": f"gen_{number // 2}",
        "page_start": number + 1,
        "page_end": number + 2,
        "language": ["en", "de", None][number % 3],
        "tags": ["public", "legal"][: number % 3],
        "published": f"2025-0{number + 1}-01T00:00:00Z",
        "text": ["Pump notice", "Valve and pump", "Leave policy"][number % 3],
        "parts": [{"kind": "row", "size": number}, {"kind": "cell", "size": 2}],
    }


def point(number: int) -> models.PointStruct:
    return models.PointStruct(id=IDS[number], vector=vectors(number), payload=payload(number))


def create(client: QdrantClient, name: str, metadata: dict[str, Any] | None) -> Any:
    return client.create_collection(
        name,
        vectors_config={"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)},
        sparse_vectors_config={"lexical": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata=metadata,
    )


def matches(key: str, value: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def only(condition: Any) -> models.Filter:
    return models.Filter(must=[condition])


TENANT_A = only(matches("tenant", "ten_a"))
LEGS = [
    models.Prefetch(query=QUESTION, using="dense", limit=5, filter=TENANT_A),
    models.Prefetch(query=TERMS, using="lexical", limit=5, filter=TENANT_A),
]

FILTERS: dict[str, models.Filter] = {
    "match_value": TENANT_A,
    "match_any": only(
        models.FieldCondition(key="document", match=models.MatchAny(any=["doc_0", "doc_2"]))
    ),
    "match_except": only(
        models.FieldCondition(
            key="collection", match=models.MatchExcept.model_validate({"except": ["manuals"]})
        )
    ),
    "match_text": only(models.FieldCondition(key="text", match=models.MatchText(text="pump"))),
    "range": only(models.FieldCondition(key="page_start", range=models.Range(gte=2, lt=5))),
    "datetime_range": only(
        models.FieldCondition(
            key="published",
            range=models.DatetimeRange(gt=datetime.fromisoformat("2025-02-15T00:00:00+00:00")),
        )
    ),
    "has_id": only(models.HasIdCondition(has_id=[IDS[1], IDS[4]])),
    "has_vector": only(models.HasVectorCondition(has_vector="lexical")),
    "is_empty": only(models.IsEmptyCondition(is_empty=models.PayloadField(key="tags"))),
    "is_null": only(models.IsNullCondition(is_null=models.PayloadField(key="language"))),
    "nested": only(
        models.NestedCondition(
            nested=models.Nested(
                key="parts",
                filter=models.Filter(
                    must=[
                        matches("kind", "row"),
                        models.FieldCondition(key="size", range=models.Range(gt=3)),
                    ]
                ),
            )
        )
    ),
    "should_must_not": models.Filter(
        should=[matches("language", "de"), matches("document", "doc_0")],
        must_not=[matches("tags", "legal")],
    ),
    "min_should": models.Filter(
        min_should=models.MinShould(
            conditions=[
                matches("language", "de"),
                matches("tenant", "ten_b"),
                matches("collection", "contracts"),
            ],
            min_count=2,
        )
    ),
}


def _alias(alias: str, name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(
        create_alias=models.CreateAlias(alias_name=alias, collection_name=name)
    )


def _drop(alias: str) -> models.DeleteAliasOperation:
    return models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))


def _rename(old: str, new: str) -> models.RenameAliasOperation:
    return models.RenameAliasOperation(
        rename_alias=models.RenameAlias(old_alias_name=old, new_alias_name=new)
    )


def _index(field: str, schema: Any) -> Step:
    return Step(
        "indexes",
        f"index {field}",
        lambda client: client.create_payload_index(NAME, field, schema, wait=True),
    )


def _query(name: str, **arguments: Any) -> Step:
    return Step("queries", name, lambda client: client.query_points(ALIAS, **arguments))


def _read(name: str, call: Call) -> Step:
    return Step("reads", name, call)


def _scroll(name: str, condition: models.Filter) -> Step:
    return _read(f"scroll {name}", lambda c: c.scroll(ALIAS, scroll_filter=condition, limit=20))


def _count(name: str, condition: models.Filter) -> Step:
    return _read(f"count {name}", lambda c: c.count(ALIAS, count_filter=condition))


def _write(name: str, call: Call) -> Step:
    return Step("updates", name, call)


CREATING = [
    Step("collections", "create", lambda c: create(c, NAME, {"schema": 1, "embedder": "minilm"})),
    Step("collections", "create the next", lambda c: create(c, NEXT, None)),
    Step("collections", "exists", lambda c: c.collection_exists(NAME)),
    Step("collections", "exists not", lambda c: c.collection_exists("nothing")),
    Step("collections", "list", lambda c: c.get_collections()),
    Step(
        "collections",
        "merge metadata",
        lambda c: c.update_collection(NAME, metadata={"average_terms": 88.5, "embedder": "other"}),
    ),
    Step("aliases", "create alias", lambda c: c.update_collection_aliases([_alias(ALIAS, NEXT)])),
    Step(
        "aliases",
        "switch and rename in one",
        lambda c: c.update_collection_aliases(
            [_drop(ALIAS), _alias(ALIAS, NAME), _alias("old", NEXT), _rename("old", "older")]
        ),
    ),
    Step("aliases", "list aliases", lambda c: c.get_aliases()),
    Step("aliases", "aliases of one", lambda c: c.get_collection_aliases(NAME)),
    Step("collections", "get through the alias", lambda c: c.get_collection(ALIAS)),
    _index(
        "tenant", models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    ),
    _index("document", models.PayloadSchemaType.KEYWORD),
    _index("generation", models.PayloadSchemaType.KEYWORD),
    _index("page_start", models.PayloadSchemaType.INTEGER),
    _index(
        "page_end",
        models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=True),
    ),
    _index("published", models.PayloadSchemaType.DATETIME),
    _index("weight", models.PayloadSchemaType.FLOAT),
    _index("draft", models.PayloadSchemaType.BOOL),
    _index(
        "text",
        models.TextIndexParams(
            type=models.TextIndexType.TEXT, tokenizer=models.TokenizerType.WORD, lowercase=True
        ),
    ),
    Step("indexes", "drop index", lambda c: c.delete_payload_index(NAME, "weight", wait=True)),
]
WRITING = [
    _write("upsert", lambda c: c.upsert(ALIAS, [point(n) for n in range(4)], wait=True)),
    _write(
        "upsert a batch",
        lambda c: c.upsert(
            ALIAS,
            models.Batch(
                ids=IDS[4:],
                vectors={
                    "dense": DENSE[4:],
                    "lexical": [vectors(number)["lexical"] for number in (4, 5)],
                },
                payloads=[payload(4), payload(5)],
            ),
            wait=True,
            ordering=models.WriteOrdering.STRONG,
        ),
    ),
]
READING = [
    _read("retrieve", lambda c: c.retrieve(ALIAS, IDS[1:3], with_vectors=["dense"])),
    _read("scroll", lambda c: c.scroll(ALIAS, limit=4, with_vectors=True)),
    _read("scroll on", lambda c: c.scroll(ALIAS, limit=4, offset=IDS[4], with_payload=["text"])),
    _read(
        "scroll without text",
        lambda c: c.scroll(
            ALIAS,
            limit=2,
            with_payload=models.PayloadSelectorExclude(exclude=["text", "parts"]),
        ),
    ),
    _read("count", lambda c: c.count(ALIAS)),
    _read("count roughly", lambda c: c.count(ALIAS, exact=False)),
    _read("facet", lambda c: c.facet(ALIAS, "document", facet_filter=TENANT_A, exact=True)),
    *(_scroll(name, condition) for name, condition in FILTERS.items()),
    *(_count(name, condition) for name, condition in FILTERS.items()),
]
QUERYING = [
    _query("dense", query=QUESTION, using="dense", limit=4, with_payload=["document"]),
    _query("sparse", query=TERMS, using="lexical", limit=4, with_vectors=["lexical"]),
    _query("nearest", query=models.NearestQuery(nearest=QUESTION), using="dense", limit=2),
    _query("filtered", query=QUESTION, using="dense", query_filter=TENANT_A, limit=10),
    _query("threshold", query=QUESTION, using="dense", score_threshold=0.7, limit=10),
    _query("offset", query=QUESTION, using="dense", limit=2, offset=2),
    _query(
        "exact",
        query=QUESTION,
        using="dense",
        search_params=models.SearchParams(exact=True, hnsw_ef=64),
        consistency=models.ReadConsistencyType.ALL,
        timeout=30,
    ),
    _query("no query", query_filter=TENANT_A, limit=3),
    _query("rrf", prefetch=LEGS, query=models.RrfQuery(rrf=models.Rrf(k=61, weights=[1, 2.5]))),
    _query("dbsf", prefetch=LEGS, query=models.FusionQuery(fusion=models.Fusion.DBSF), limit=3),
    _query("rescored", prefetch=LEGS[1], query=QUESTION, using="dense", limit=3),
    _query(
        "nested prefetch",
        prefetch=[
            models.Prefetch(
                prefetch=LEGS, query=models.FusionQuery(fusion=models.Fusion.DBSF), limit=4
            ),
            models.Prefetch(query=QUESTION, using="dense", limit=2, score_threshold=0.2),
        ],
        query=models.FusionQuery(fusion=models.Fusion.DBSF),
    ),
    Step(
        "queries",
        "two legs in one batch",
        lambda c: c.query_batch_points(
            ALIAS,
            [
                models.QueryRequest(
                    query=QUESTION, using="dense", limit=3, filter=TENANT_A, with_payload=True
                ),
                models.QueryRequest(
                    query=TERMS, using="lexical", limit=3, filter=TENANT_A, with_payload=True
                ),
            ],
        ),
    ),
]
CHANGING = [
    _write(
        "set payload", lambda c: c.set_payload(ALIAS, {"tags": ["new"]}, points=IDS[:2], wait=True)
    ),
    _write(
        "set payload below a key",
        lambda c: c.set_payload(ALIAS, {"by": "ana"}, points=[IDS[0]], key="review.last"),
    ),
    _write(
        "set payload by filter", lambda c: c.set_payload(ALIAS, {"seen": True}, points=TENANT_A)
    ),
    _write(
        "overwrite payload",
        lambda c: c.overwrite_payload(ALIAS, {"document": "doc_9"}, points=[IDS[2]]),
    ),
    _write("delete payload", lambda c: c.delete_payload(ALIAS, ["seen", "parts[].size"], [IDS[0]])),
    _write("clear payload", lambda c: c.clear_payload(ALIAS, [IDS[3]])),
    _write(
        "update vectors",
        lambda c: c.update_vectors(
            ALIAS,
            [models.PointVectors(id=IDS[1], vector={"dense": [0.2, 0.2, 0.2, 0.9]})],
            wait=True,
        ),
    ),
    _write("delete vectors", lambda c: c.delete_vectors(ALIAS, ["lexical"], [IDS[5]])),
    _write("what is left", lambda c: c.scroll(ALIAS, limit=20, with_vectors=True)),
    _write("delete by ids", lambda c: c.delete(ALIAS, [IDS[0], IDS[1]], wait=True)),
    _write(
        "delete by filter",
        lambda c: c.delete(ALIAS, models.FilterSelector(filter=only(matches("tenant", "ten_b")))),
    ),
    _write("what is left then", lambda c: c.scroll(ALIAS, limit=20)),
    Step("collections", "delete", lambda c: c.delete_collection(NEXT)),
    Step("collections", "delete again", lambda c: c.delete_collection(NEXT)),
    Step("aliases", "aliases after delete", lambda c: c.get_aliases()),
]
STEPS: list[Step] = [*CREATING, *WRITING, *READING, *QUERYING, *CHANGING]
