"""Beside the points: version, health, metrics, and who may ask."""

import threading
import warnings

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.contract.index import dataset
from tests.contract.index.conftest import Target

NAME = "service"


def test_an_unmodified_client_accepts_the_version(ours: Target) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = set(threading.enumerate())
        client = ours.client()  # compares versions in a thread
        for thread in set(threading.enumerate()) - before:
            thread.join()
    assert [str(warning.message) for warning in caught] == []
    assert client.info().version.startswith("1.20.")
    client.close()


def test_health_needs_no_key(ours: Target) -> None:
    for path in ("/", "/healthz", "/livez", "/readyz", "/metrics"):
        assert httpx.get(ours.url + path).status_code == 200, path


def test_everything_else_needs_the_key(ours: Target) -> None:
    assert ours.api_key is not None
    for headers, status in (
        ({}, 401),
        ({"api-key": "wrong"}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"api-key": ours.api_key}, 200),
        ({"authorization": f"Bearer {ours.api_key}"}, 200),
    ):
        answer = httpx.get(f"{ours.url}/collections", headers=headers)
        assert answer.status_code == status, headers
        assert (status == 200) == ("result" in answer.json())
    client = QdrantClient(url=ours.url, headers={"api-key": "wrong"}, check_compatibility=False)
    with pytest.raises(UnexpectedResponse) as refused:
        client.get_collections()
    assert refused.value.status_code == 401
    client.close()


def test_a_foreign_host_header_is_refused(ours: Target) -> None:
    # A page on another origin can make a browser resolve its own name to this machine.
    for host in ("evil.example", "127.0.0.1.evil.example", ""):
        answer = httpx.get(ours.url + "/", headers={"host": host})
        assert answer.status_code in (400, 403), host
    assert httpx.get(ours.url + "/", headers={"host": "localhost:1"}).status_code == 200


def metric(text: str, name: str) -> float:
    values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(name + " ")]
    return float(values[0]) if values else 0.0


def test_metrics_count_requests_and_points(ours: Target) -> None:
    client = ours.client()
    upserts = 'pincite_index_requests_total{operation="upsert",status="200"}'
    refusals = 'pincite_index_requests_total{operation="count",status="404"}'
    updates = 'pincite_index_operation_seconds_count{kind="update"}'
    before = httpx.get(f"{ours.url}/metrics").text
    dataset.fill(client, NAME, dataset.points(seed=1, num_points=30))
    with pytest.raises(UnexpectedResponse):
        client.count("nothing")
    after = httpx.get(f"{ours.url}/metrics").text
    for name in (upserts, refusals, updates, "pincite_index_collections"):
        assert metric(after, name) == metric(before, name) + 1, name
    assert metric(after, f'pincite_index_points{{collection="{NAME}"}}') == 30
    client.delete_collection(NAME)
    assert f'collection="{NAME}"' not in httpx.get(f"{ours.url}/metrics").text
    client.close()


def test_readers_and_writers_at_once(ours: Target) -> None:
    client = ours.client()
    client.create_collection(
        NAME,
        vectors_config=dataset.vectors_config(),
        sparse_vectors_config=dataset.sparse_config(),
    )
    rows = dataset.points(seed=4, num_points=240)
    problems: list[Exception] = []

    def write(part: list[models.PointStruct]) -> None:
        try:
            for start in range(0, len(part), 20):
                client.upsert(NAME, part[start : start + 20], wait=True)
        except UnexpectedResponse as error:
            problems.append(error)

    def read() -> None:
        try:
            for row in rows[:20]:
                assert isinstance(row.vector, dict)
                found = client.query_points(NAME, query=row.vector["dense"], using="dense").points
                assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
        except UnexpectedResponse as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(rows[i::3],)) for i in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert client.count(NAME, exact=True).count == len(rows)
    client.delete_collection(NAME)
    client.close()
