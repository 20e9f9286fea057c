"""Random sequences of updates leave the same points behind as in local mode."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.contract.index import dataset
from tests.contract.index.answers import difference, plain
from tests.contract.index.conftest import Target

NAME = "parity_updates"
Update = Callable[[QdrantClient], Any]
Rows = list[models.PointStruct]


@pytest.fixture(scope="module")
def server(target: Target) -> Iterator[QdrantClient]:
    client = target.client()
    yield client
    client.delete_collection(NAME)
    client.close()


def fresh(server: QdrantClient, rows: Rows) -> tuple[QdrantClient, QdrantClient]:
    """The server's collection anew, and local mode with the same points."""
    local = QdrantClient(":memory:")
    server.delete_collection(NAME)
    for client in (server, local):
        dataset.fill(client, NAME, rows)
    server.create_payload_index(NAME, "tenant", models.PayloadSchemaType.KEYWORD, wait=True)
    return server, local


def state(client: QdrantClient) -> Any:
    records, following = client.scroll(NAME, limit=1000, with_vectors=True)
    assert following is None
    return plain(records)


def some_filter(rng: random.Random) -> models.Filter:
    key, value = rng.choice([("tenant", "ten_1"), ("language", "de"), ("tags", "old")])
    condition = models.FieldCondition(key=key, match=models.MatchValue(value=value))
    return models.Filter(must=[condition])


def random_update(rng: random.Random, rows: Rows, alive: set[Any]) -> tuple[str, Update]:
    """One update of points that exist (or, for upserts and deletes, may not)."""
    known: list[Any] = rng.sample(sorted(alive, key=str), min(3, len(alive)))
    target: Any = rng.choice([known, some_filter(rng)])
    row = rng.choice(rows)
    changed = row.model_copy(update={"payload": {"tenant": "ten_1", "round": rng.randrange(9)}})
    vectors: dict[str, Any] = {"dense": dataset.dense(rng), "lexical": dataset.sparse(rng, 4)}
    one_vector: dict[str, Any] = dict([rng.choice(list(vectors.items()))])
    batch = models.Batch(
        ids=known,
        vectors={name: [vector] * len(known) for name, vector in vectors.items()},
        payloads=[{"batch": True}] * len(known),
    )
    mode = rng.choice(list(models.UpdateMode))
    if len(alive) < 4:
        return "upsert", lambda c: c.upsert(NAME, rows, wait=True)
    return rng.choice(
        [
            ("upsert", lambda c: c.upsert(NAME, [changed], wait=True)),
            ("batch", lambda c: c.upsert(NAME, batch, wait=True)),
            ("mode", lambda c: c.upsert(NAME, [changed], update_mode=mode, wait=True)),
            (
                "conditional",
                lambda c: c.upsert(NAME, [changed], update_filter=some_filter(random.Random(3))),
            ),
            ("set", lambda c: c.set_payload(NAME, {"note": {"by": 1}, "tags": []}, target)),
            ("set null", lambda c: c.set_payload(NAME, {"language": None}, target)),
            ("set below", lambda c: c.set_payload(NAME, {"by": 2}, target, key="note")),
            ("overwrite", lambda c: c.overwrite_payload(NAME, {"tenant": "ten_1"}, target)),
            ("delete keys", lambda c: c.delete_payload(NAME, ["tags", "parts[].size"], target)),
            ("clear", lambda c: c.clear_payload(NAME, known)),
            (
                "vectors",
                lambda c: c.update_vectors(
                    NAME, [models.PointVectors(id=i, vector=one_vector) for i in known]
                ),
            ),
            ("delete vectors", lambda c: c.delete_vectors(NAME, ["lexical"], target)),
            ("delete", lambda c: c.delete(NAME, [*known[:1], 987654321], wait=True)),
            ("delete by filter", lambda c: c.delete(NAME, some_filter(rng), wait=True)),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_updates(server: QdrantClient, seed: int) -> None:
    rng = random.Random(seed)
    rows = dataset.points(seed=seed, num_points=40)
    _, local = fresh(server, rows)
    done: list[str] = []
    for _ in range(25):
        alive = {record["id"] for record in state(local)}
        name, update = random_update(rng, rows, alive)
        before = rng.getstate()
        for client in (server, local):
            rng.setstate(before)  # an update that draws must draw the same twice
            update(client)
        done.append(name)
        found = difference(state(server), state(local))
        assert found is None, (done, found)
    local.close()


def test_integer_and_uuid_ids_share_a_collection_in_id_order(server: QdrantClient) -> None:
    rows = dataset.points(seed=1, num_points=6)
    _, local = fresh(server, rows)
    numbered = [
        models.PointStruct(id=number, vector=rows[0].vector, payload={"n": number})
        for number in (7, 2**64 - 1, 0)
    ]
    for client in (server, local):
        client.upsert(NAME, numbered, wait=True)
    assert difference(state(server), state(local)) is None
    assert [record["id"] for record in state(server)][:3] == [0, 7, 2**64 - 1]
    local.close()


def test_the_last_of_two_points_with_one_id_stays(server: QdrantClient) -> None:
    rows = dataset.points(seed=1, num_points=2)
    _, local = fresh(server, [])
    twice = [rows[0], rows[1].model_copy(update={"id": rows[0].id})]
    for client in (server, local):
        client.upsert(NAME, twice, wait=True)
    assert difference(state(server), state(local)) is None
    assert state(server)[0]["payload"] == rows[1].payload
    local.close()


def test_a_large_upsert_is_complete(server: QdrantClient) -> None:
    rows = dataset.points(seed=2, num_points=450)  # more than two slices
    fresh(server, [])[1].close()
    server.upsert(NAME, rows, wait=True)
    assert server.count(NAME, exact=True).count == 450


def test_changing_a_point_that_is_not_there_changes_nothing(server: QdrantClient) -> None:
    # Local mode raises KeyError half-way; a server refuses with 404, and so that a refusal is
    # never half done, ours looks first.
    rows = dataset.points(seed=3, num_points=3)
    fresh(server, rows)[1].close()
    before = state(server)
    ids: list[Any] = [str(rows[0].id), 424242]
    vector: dict[str, Any] = {"dense": dataset.dense(random.Random(1))}
    updates: list[Update] = [
        lambda c: c.set_payload(NAME, {"x": 1}, ids, wait=True),
        lambda c: c.overwrite_payload(NAME, {"x": 1}, ids, wait=True),
        lambda c: c.delete_payload(NAME, ["tenant"], ids, wait=True),
        lambda c: c.clear_payload(NAME, ids, wait=True),
        lambda c: c.delete_vectors(NAME, ["lexical"], ids, wait=True),
        lambda c: c.update_vectors(
            NAME, [models.PointVectors(id=i, vector=vector) for i in ids], wait=True
        ),
    ]
    for update in updates:
        with pytest.raises(UnexpectedResponse, match="No point with id 424242") as refused:
            update(server)
        assert refused.value.status_code == 404
    assert state(server) == before
