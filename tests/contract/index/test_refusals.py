"""What the subset does not honour is refused by name: never ignored, never half done."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.contract.index.conftest import Target

NAME = "refusing"
POINTS = f"/collections/{NAME}/points"
ONE = {"id": 1, "vector": {"dense": [1, 0], "lexical": {"indices": [1], "values": [1.0]}}}
DENSE = [0.5, 0.5]
LEG = {"query": DENSE, "using": "dense"}
SLICE = {"slice": {"total": 2, "index": 0}}
TERM = {"indices": [1], "values": [1.0]}


@pytest.fixture(scope="module")
def http(ours: Target) -> Iterator[httpx.Client]:
    with ours.http() as client:
        body = {
            "vectors": {"dense": {"size": 2, "distance": "Cosine"}},
            "sparse_vectors": {"lexical": {"modifier": "idf"}, "raw": {}},
        }
        assert client.put(f"/collections/{NAME}", json=body).status_code == 200
        assert client.put(f"{POINTS}?wait=true", json={"points": [ONE]}).status_code == 200
        yield client
        client.delete(f"/collections/{NAME}")


def create(**fields: Any) -> tuple[str, str, Any]:
    body = {"vectors": {"dense": {"size": 2, "distance": "Cosine"}}, **fields}
    return ("PUT", "/collections/refused", body)


def vector(**fields: Any) -> tuple[str, str, Any]:
    return create(vectors={"dense": {"size": 2, "distance": "Cosine", **fields}})


def upsert(point: dict[str, Any], **fields: Any) -> tuple[str, str, Any]:
    return ("PUT", POINTS, {"points": [{**ONE, **point}], **fields})


def query(**fields: Any) -> tuple[str, str, Any]:
    return ("POST", f"{POINTS}/query", {**LEG, **fields})


def fused(rrf: dict[str, Any], **fields: Any) -> tuple[str, str, Any]:
    return ("POST", f"{POINTS}/query", {"prefetch": [LEG], "query": {"rrf": rrf}, **fields})


def where(condition: Any) -> tuple[str, str, Any]:
    return ("POST", f"{POINTS}/count", {"filter": {"must": [condition]}})


def index(schema: Any) -> tuple[str, str, Any]:
    return ("PUT", f"/collections/{NAME}/index", {"field_name": "x", "field_schema": schema})


def payload(body: dict[str, Any]) -> tuple[str, str, Any]:
    return ("POST", f"{POINTS}/payload", {"payload": {"x": 1}, **body})


def nested(levels: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(levels):
        content = {"a": content}
    return content


# request, a part of the message
KNOWN_BUT_NOT_HONOURED: dict[str, tuple[tuple[str, str, Any], str]] = {
    "several shards": (create(shard_number=2), "shard_number"),
    "custom sharding": (create(sharding_method="custom"), "sharding_method"),
    "replicas": (create(replication_factor=2), "replication_factor"),
    "write consistency": (create(write_consistency_factor=2), "write_consistency_factor"),
    "wal": (create(wal_config={"wal_capacity_mb": 1}), "wal_config"),
    "strict mode": (create(strict_mode_config={"enabled": True}), "strict_mode_config"),
    "quantization": (
        create(quantization_config={"scalar": {"type": "int8"}}),
        "quantization_config",
    ),
    "deferred points": (
        create(optimizers_config={"prevent_unoptimized": True}),
        "optimizers_config.prevent_unoptimized",
    ),
    "background optimiser": (
        create(optimizers_config={"max_optimization_threads": 2}),
        "max_optimization_threads",
    ),
    "flush interval": (create(optimizers_config={"flush_interval_sec": 9}), "flush_interval_sec"),
    "payload memory": (create(payload={"memory": "cold"}), "payload"),
    "float16": (vector(datatype="float16"), "vectors.dense.datatype"),
    "multivectors": (vector(multivector_config={"comparator": "max_sim"}), "multivector_config"),
    "hnsw of one vector": (vector(hnsw_config={"m": 8}), "vectors.dense.hnsw_config"),
    "other updates": (
        ("PATCH", f"/collections/{NAME}", {"metadata": {}, "params": {"replication_factor": 1}}),
        "params",
    ),
    "geo index": (index("geo"), "geo"),
    "index on disk": (index({"type": "keyword", "on_disk": True}), "field_schema.on_disk"),
    "stemmer": (
        index({"type": "text", "stemmer": {"type": "snowball", "language": "english"}}),
        "field_schema.stemmer",
    ),
    "shard key of an upsert": (upsert({}, shard_key="a"), "shard_key"),
    "inference": (upsert({"vector": {"dense": {"text": "x", "model": "m"}}}), "Document"),
    "multivector point": (upsert({"vector": {"dense": [[1.0, 0.0]]}}), "multivectors"),
    "shard key of a query": (query(shard_key="a"), "shard_key"),
    "lookup": (query(lookup_from={"collection": "other"}), "lookup_from"),
    "query by id": (query(query=1), "point id"),
    "query by uuid": (query(query="0b1f4f53-0b0c-5f5e-9f6c-0d4a3a5f0001"), "point id"),
    "recommendation": (query(query={"recommend": {"positive": [1]}}), "RecommendQuery"),
    "discovery": (query(query={"discover": {"target": 1, "context": []}}), "DiscoverQuery"),
    "order by": (query(query={"order_by": "x"}), "OrderByQuery"),
    "sample": (query(query={"sample": "random"}), "SampleQuery"),
    "formula": (query(query={"formula": {"sum": ["$score", 1.0]}}), "FormulaQuery"),
    "text query": (query(query={"text": "pump"}), "TextQuery"),
    "mmr": (query(query={"nearest": DENSE, "mmr": {"diversity": 0.5}}), "mmr"),
    "quantization search": (
        query(params={"quantization": {"rescore": True}}),
        "params.quantization",
    ),
    "indexed only": (query(params={"indexed_only": True}), "params.indexed_only"),
    "acorn": (query(params={"acorn": {"enable": True}}), "params.acorn"),
    "scroll order": (("POST", f"{POINTS}/scroll", {"order_by": "x"}), "order_by"),
    "geo": (
        where({"key": "x", "geo_radius": {"center": {"lon": 1.0, "lat": 1.0}, "radius": 9.0}}),
        "geo_radius",
    ),
    "values count": (where({"key": "x", "values_count": {"gt": 1}}), "values_count"),
    "prefix": (where({"key": "x", "match": {"prefix": "a"}}), "MatchPrefix"),
    "substring": (where({"key": "x", "match": {"substring": "a"}}), "MatchSubstring"),
    "slice": (where(SLICE), "SliceCondition"),
    "deep inside a filter": (
        where({"must": [{"nested": {"key": "a", "filter": {"must": SLICE}}}]}),
        "filter.must[0].must[0].nested.filter.must",
    ),
    "key when overwriting": (
        ("PUT", f"{POINTS}/payload", {"payload": {}, "points": [1], "key": "a"}),
        "`key`",
    ),
}  # fmt: skip

CANNOT_WORK: dict[str, tuple[tuple[str, str, Any], str]] = {
    "no body": (("PUT", "/collections/refused", None), "JSON"),
    "no vectors": (create(vectors={}), "at least one vector"),
    "size zero": (vector(size=0), "size 0"),
    "one name twice": (create(sparse_vectors={"dense": {}}), "share a name"),
    "vector name": (create(vectors={"a/b": {"size": 2, "distance": "Dot"}}), "vector name"),
    "bad hnsw": (create(hnsw_config={"m": -1}), "hnsw_config"),
    "a number as text": (("POST", f"{POINTS}/scroll", {"limit": "10"}), "limit"),
    "wrong size": (upsert({"vector": {"dense": [1.0]}}), "expected dim: 2, got 1"),
    "unknown vector": (upsert({"vector": {"nope": [1.0, 0.0]}}), "Not existing vector name"),
    "unnamed vector": (upsert({"vector": [1.0, 0.0]}), "Not existing vector name"),
    "dense as sparse": (upsert({"vector": {"lexical": [1.0, 0.0]}}), "is sparse"),
    "sparse as dense": (upsert({"vector": {"dense": TERM}}), "is dense"),
    "repeated index": (
        upsert({"vector": {"lexical": {"indices": [1, 1], "values": [1.0, 2.0]}}}),
        "unique",
    ),
    "uneven sparse": (
        upsert({"vector": {"lexical": {"indices": [1, 2], "values": [1.0]}}}),
        "differ in length",
    ),
    "index too large": (
        upsert({"vector": {"lexical": {"indices": [2**32], "values": [1.0]}}}),
        "32 unsigned bits",
    ),
    "beyond float32": (upsert({"vector": {"dense": [1e39, 0.0]}}), "float32"),
    "negative id": (upsert({"id": -1}), "not a valid point ID"),
    "id that is no uuid": (upsert({"id": "abc"}), "not a valid point ID"),
    "deep payload": (upsert({"payload": nested(70)}), "nested deeper"),
    "uneven batch": (
        ("PUT", POINTS, {"batch": {"ids": [1, 2], "vectors": {"dense": [[1.0, 0.0]]}}}),
        "differ in length",
    ),
    "empty upsert": (("PUT", POINTS, {"points": []}), "Empty update request"),
    "empty delete": (("POST", f"{POINTS}/delete", {"points": []}), "Empty update request"),
    "ids and filter": (payload({"points": [1], "filter": {}}), "not both"),
    "neither ids nor filter": (payload({}), "must be provided"),
    "deep key": (
        payload({"points": [1], "payload": nested(40), "key": ".".join("a" * 30)}),
        "nested deeper",
    ),
    "bad payload path": (payload({"points": [1], "key": "a[b"}), "JSON path"),
    "bad filter path": (where({"key": "a b", "match": {"value": 1}}), "JSON path"),
    "bad selector": (("POST", f"{POINTS}/scroll", {"with_payload": ["a["]}), "JSON path"),
    "bad date": (where({"key": "x", "range": {"gte": "yesterday"}}), "JSON"),
    "no test": (where({"key": "x"}), "exactly one test"),
    "two tests": (
        where({"key": "x", "match": {"value": 1}, "range": {"gte": 1.0}}),
        "exactly one test",
    ),
    "min should": (
        ("POST", f"{POINTS}/count", {"filter": {"min_should": {"conditions": [], "min_count": 0}}}),
        "min_count",
    ),
    "limit zero": (query(limit=0), "limit"),
    "negative offset": (query(offset=-1), "offset"),
    "unknown using": (query(using="nope"), "Not existing vector name"),
    "no using": (("POST", f"{POINTS}/query", {"query": DENSE}), "Not existing vector name"),
    "unknown with_vector": (query(with_vector=["nope"]), "Not existing vector name"),
    "fusion of nothing": (
        ("POST", f"{POINTS}/query", {"query": {"fusion": "rrf"}}),
        "needs prefetches",
    ),
    "prefetch for nothing": (("POST", f"{POINTS}/query", {"prefetch": [LEG]}), "merge"),
    "fusion with using": (fused({}, using="dense"), "using"),
    "rrf k": (fused({"k": 0}), "rrf.k"),
    "rrf weights": (fused({"weights": [1.0, 2.0]}), "weights"),
    "negative weight": (fused({"weights": [-1.0]}), "weights"),
    "params of a fusion": (fused({}, params={"exact": True}), "params"),
    "idf without idf": (
        query(using="raw", query={"indices": [1], "values": [1.0]}, params={"idf": "global"}),
        "IDF",
    ),
    "threshold of nothing": (
        ("POST", f"{POINTS}/query", {"score_threshold": 0.5}),
        "score_threshold",
    ),
    "facet without index": (("POST", f"/collections/{NAME}/facet", {"key": "x"}), "index"),
    "no schema": (index(None), "field_schema"),
    "missing alias target": (("POST", "/collections/aliases", {"actions": [{}]}), "JSON"),
}  # fmt: skip


def snapshot(http: httpx.Client) -> Any:
    return http.post(f"{POINTS}/scroll", json={"with_vector": True}).json()["result"]


@pytest.mark.parametrize("name", [*KNOWN_BUT_NOT_HONOURED, *CANNOT_WORK])
def test_refused(http: httpx.Client, name: str) -> None:
    (method, path, body), message = {**KNOWN_BUT_NOT_HONOURED, **CANNOT_WORK}[name]
    before = snapshot(http)
    answer = http.request(method, path, json=body)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["status"]["error"]
    assert snapshot(http) == before
    assert http.get("/collections/refused/exists").json()["result"] == {"exists": False}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json(http: httpx.Client, word: str) -> None:
    before = snapshot(http)
    for body in (
        json.dumps({"points": [ONE]}).replace("1.0", word),
        json.dumps({"points": [{**ONE, "payload": {"x": "@"}}]}).replace('"@"', word),
    ):
        answer = http.put(POINTS, content=body)
        assert answer.status_code == 400, answer.text
    assert snapshot(http) == before
    # The same word inside a string is only a word.
    word_point = {**ONE, "payload": {"x": word}}
    assert http.put(f"{POINTS}?wait=true", json={"points": [word_point]}).status_code == 200
    assert http.put(f"{POINTS}?wait=true", json={"points": [ONE]}).status_code == 200


def test_query_parameters_of_a_single_server(http: httpx.Client) -> None:
    counting, writing = f"{POINTS}/count", f"{POINTS}/payload"
    body = {"payload": {}, "points": [1]}
    for value in ("1", "all", "majority", "quorum"):
        assert http.post(counting, json={}, params={"consistency": value}).status_code == 200
    for value in ("weak", "medium", "strong"):
        assert http.post(writing, json=body, params={"ordering": value}).status_code == 200
    refused = [
        (counting, {"consistency": "2"}),
        (counting, {"timeout": "0"}),
        (counting, {"timeout": "soon"}),
        (counting, {"wait": "true"}),
        (writing, {"ordering": "none"}),
        (writing, {"wait": "1"}),
        (writing, {"consistency": "all"}),
    ]
    for path, parameters in refused:
        answer = http.post(path, json=body if path == writing else {}, params=parameters)
        assert answer.status_code == 400, (path, parameters)


def test_endpoints_outside_the_subset(http: httpx.Client) -> None:
    groups = {"group_by": "x", "limit": 3, "group_size": 1, "query": DENSE, "using": "dense"}
    answer = http.post(f"{POINTS}/query/groups", json=groups)
    assert answer.status_code == 501
    assert "grouped queries" in answer.json()["status"]["error"]
    for method, path in (
        ("POST", f"{POINTS}/batch"),
        ("POST", f"{POINTS}/search"),
        ("POST", f"{POINTS}/recommend"),
        ("GET", f"/collections/{NAME}/snapshots"),
        ("GET", "/cluster"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("PATCH", POINTS),
    ):
        answer = http.request(method, path, json={})
        assert answer.status_code == 404, (method, path)
        assert "subset" in answer.json()["status"]["error"]


def test_a_body_where_none_belongs(http: httpx.Client) -> None:
    assert http.request("GET", "/collections", json={"limit": 1}).status_code == 400
    assert http.request("DELETE", f"/collections/{NAME}", json={}).status_code == 400
    assert http.get(f"/collections/{NAME}/exists").json()["result"] == {"exists": True}


def test_a_body_beyond_the_limit(http: httpx.Client) -> None:
    answer = http.put(POINTS, content=b" " * (32 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert "too large" in answer.json()["status"]["error"]


def test_messages_name_places_and_not_values(http: httpx.Client) -> None:
    secret = "the text of a document"
    answer = http.put(POINTS, json={"points": [{**ONE, "payload": secret}]})
    assert answer.status_code == 400
    assert secret not in answer.text
