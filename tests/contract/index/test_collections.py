"""Collections and aliases: what cannot be compared with local mode, and errors' shapes."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from tests.contract.index import dataset
from tests.contract.index.conftest import Target

NAMES = ("parity_first", "parity_second", "parity_plain")
ALIAS = "parity_alias"


@pytest.fixture
def client(target: Target) -> Iterator[QdrantClient]:
    client = target.client()
    yield client
    for name in NAMES:
        client.delete_collection(name)
    client.close()


def point_to(name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=name, alias_name=ALIAS)
    )


def test_metadata_merges_and_a_null_removes(client: QdrantClient) -> None:
    client.create_collection(
        NAMES[0], vectors_config=dataset.vectors_config(), metadata={"a": 1, "b": {"c": 2}}
    )
    client.update_collection(NAMES[0], metadata={"a": None, "b": {"d": 3}, "e": "x"})
    assert client.get_collection(NAMES[0]).config.metadata == {"b": {"d": 3}, "e": "x"}


def test_collection_info_shows_what_was_asked_for(client: QdrantClient) -> None:
    client.create_collection(
        NAMES[0],
        vectors_config={
            "dense": models.VectorParams(size=3, distance=models.Distance.DOT, on_disk=True)
        },
        sparse_vectors_config={
            "lexical": models.SparseVectorParams(
                modifier=models.Modifier.IDF,
                index=models.SparseIndexParams(on_disk=False, full_scan_threshold=500),
            )
        },
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=5000),
        on_disk_payload=True,
        shard_number=1,
        replication_factor=1,
    )
    client.create_payload_index(
        NAMES[0],
        "tenant",
        models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    )
    client.upsert(
        NAMES[0],
        [models.PointStruct(id=1, vector={"dense": [1.0, 2.0, 3.0]}, payload={"tenant": "a"})],
        wait=True,
    )
    info = client.get_collection(NAMES[0])
    assert info.status == models.CollectionStatus.GREEN
    assert info.points_count == 1
    params = info.config.params
    assert isinstance(params.vectors, dict)
    assert params.vectors["dense"].on_disk is True
    assert params.sparse_vectors is not None
    assert params.sparse_vectors["lexical"].modifier == models.Modifier.IDF
    assert (info.config.hnsw_config.m, info.config.hnsw_config.payload_m) == (0, 16)
    assert info.config.optimizer_config.indexing_threshold == 5000
    tenant = info.payload_schema["tenant"]
    assert tenant.data_type == models.PayloadSchemaType.KEYWORD
    assert isinstance(tenant.params, models.KeywordIndexParams)
    assert tenant.params.is_tenant is True
    assert tenant.points == 1


def test_an_unnamed_vector_works_too(client: QdrantClient) -> None:
    client.create_collection(
        NAMES[2], vectors_config=models.VectorParams(size=2, distance=models.Distance.EUCLID)
    )
    client.upsert(
        NAMES[2],
        models.Batch(ids=[1, 2], vectors=[[0.0, 3.0], [4.0, 0.0]], payloads=[{}, {}]),
        wait=True,
    )
    found = client.query_points(NAMES[2], query=[0.0, 0.0], limit=2, with_vectors=True).points
    assert [(p.id, p.score, p.vector) for p in found] == [
        (1, 3.0, [0.0, 3.0]),
        (2, 4.0, [4.0, 0.0]),
    ]


def test_every_endpoint_follows_an_alias_and_a_switch_is_atomic(client: QdrantClient) -> None:
    first, second, _ = NAMES
    for name, number in ((first, 1), (second, 2)):
        client.create_collection(name, vectors_config=dataset.vectors_config())
        vector: dict[str, Any] = {"dense": [float(number)] * dataset.DENSE_SIZE}
        rows = [
            models.PointStruct(id=i, vector=vector, payload={"of": name}) for i in range(number)
        ]
        client.upsert(name, rows, wait=True)
    client.update_collection_aliases([point_to(first)])
    seen: list[int] = []
    problems: list[Exception] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            try:
                seen.append(client.count(ALIAS).count)
            except (UnexpectedResponse, ResponseHandlingException) as error:
                problems.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for name in (second, first) * 10:
        client.update_collection_aliases([point_to(name)])
        assert client.count(ALIAS).count == 1 + (name == second)
    stop.set()
    watcher.join()
    assert not problems
    assert set(seen) == {1, 2}
    client.upsert(ALIAS, [models.PointStruct(id=9, vector={}, payload={})], wait=True)
    assert client.count(first).count == 2
    assert client.collection_exists(ALIAS)
    # Not followed: deleting what an alias means would be a surprise.
    assert client.delete_collection(ALIAS) is False
    assert client.count(first).count == 2


def test_a_refused_list_of_alias_actions_changes_nothing(client: QdrantClient) -> None:
    client.create_collection(NAMES[0], vectors_config=dataset.vectors_config())
    client.update_collection_aliases([point_to(NAMES[0])])
    drop = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=ALIAS))
    with pytest.raises(UnexpectedResponse) as refused:
        client.update_collection_aliases([drop, point_to("nothing")])
    assert refused.value.status_code == 404
    assert [a.collection_name for a in client.get_collection_aliases(NAMES[0]).aliases] == [
        NAMES[0]
    ]


def test_names_that_are_taken_or_not_allowed(client: QdrantClient) -> None:
    client.create_collection(NAMES[0], vectors_config=dataset.vectors_config())
    client.update_collection_aliases([point_to(NAMES[0])])
    for name, status in ((NAMES[0], 409), (ALIAS, 409), ("a*b", 400), ("x" * 256, 400)):
        with pytest.raises(UnexpectedResponse) as refused:
            client.create_collection(name, vectors_config=dataset.vectors_config())
        # A real server says 400 for some of these and 409 or 422 for others, by version.
        assert refused.value.status_code in (status, 400, 409, 422), name
    taken = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=NAMES[0], alias_name=NAMES[0])
    )
    with pytest.raises(UnexpectedResponse):
        client.update_collection_aliases([taken])


def test_errors_have_the_servers_shape(target: Target) -> None:
    with target.http() as http:
        cases: list[tuple[httpx.Response, int, str]] = [
            (http.get("/collections/nothing"), 404, "Collection `nothing` doesn't exist"),
            (http.post("/collections/nothing/points/count", json={}), 404, "doesn't exist"),
            (http.put("/collections/parity_first", content=b"{"), 400, "JSON"),
        ]
        for response, status, text in cases:
            assert response.status_code == status
            content: dict[str, Any] = response.json()
            assert text in content["status"]["error"]
            assert content["time"] >= 0
