"""Listings and deletes."""

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from core.errors import ObjectStoreUnavailable
from query.app import create_app
from tests.api_world import World

MakeWorld = Callable[..., World]


def test_the_listing_is_newest_first_and_pages_through(client: TestClient, world: World) -> None:
    ids = [world.announce(f"hr/{n}.pdf", b"%PDF-" + bytes([n])).document_id for n in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = client.get(
            "/v1/documents", params={"limit": 2, "cursor": cursor or ""} if cursor else {"limit": 2}
        ).json()
        seen += [found["document_id"] for found in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ids[::-1]


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/jobs"])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 422),
        ("limit=201", 422),
        ("limit=x", 422),
        ("cursor=nonsense", 400),
        ("cursor=%00", 400),
        ("cursor=", 400),
        ("cursor=ZG9jXw", 400),
        ("limit=200", 200),
    ],
)
def test_limits_and_cursors_are_checked(
    client: TestClient, path: str, query: str, status: int
) -> None:
    answer = client.get(f"{path}?{query}")
    assert answer.status_code == status, answer.text


def test_documents_can_be_filtered_by_status_and_collection(
    client: TestClient, world: World
) -> None:
    ready = world.ingest("hr/handbook.pdf")
    world.announce("plant/manual.pdf", b"%PDF-1.7 waiting")
    found = client.get("/v1/documents", params={"status": "ready"}).json()["data"]
    assert [document["document_id"] for document in found] == [ready.document_id]
    found = client.get("/v1/documents", params={"collection": "plant"}).json()["data"]
    assert [document["status"] for document in found] == ["queued"]
    assert client.get("/v1/documents", params={"status": "odd"}).status_code == 422


def test_delete_takes_the_object_and_hides_the_document(client: TestClient, world: World) -> None:
    accepted = world.ingest()
    path = f"/v1/documents/{accepted.document_id}"
    assert client.delete(path).status_code == 204
    assert list(world.store.keys("documents")) == []
    for gone in (path, f"{path}/file", f"{path}/pages/1"):
        assert client.get(gone).status_code == 404
    assert client.get("/v1/documents").json()["data"] == []
    assert client.delete(path).status_code == 404
    assert client.post("/v1/search", json={"query": "pumps"}).json()["data"] == []


def test_delete_removes_the_object_before_it_hides_the_document(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = world.ingest()

    def fail(*_: object) -> None:
        raise ObjectStoreUnavailable("the object store does not answer")

    monkeypatch.setattr(world.store, "delete", fail)
    assert client.delete(f"/v1/documents/{accepted.document_id}").status_code == 503
    # Nothing is half done: were it hidden, reconcile would find the object and bring it back.
    shown = client.get(f"/v1/documents/{accepted.document_id}").json()
    assert shown["status"] == "ready"


def test_delete_in_a_read_only_bucket_leaves_the_object_and_a_tombstone(
    migrated_world: World, read_only_client: TestClient
) -> None:
    accepted = migrated_world.ingest()
    path = f"/v1/documents/{accepted.document_id}"
    assert read_only_client.post("/v1/documents?filename=a.pdf", content=b"%PDF").status_code == 403
    assert read_only_client.delete(path).status_code == 204
    assert list(migrated_world.store.keys("documents")) == ["hr/handbook.pdf"]
    (known,) = migrated_world.catalog.intake.known_objects(migrated_world.owner(), "documents")
    assert known.is_deleted
    assert known.tombstone_etag is not None
    assert read_only_client.get(path).status_code == 404


@pytest.fixture
def migrated_world(make_world: MakeWorld) -> World:
    return make_world(objects={"read_only_buckets": ["documents"]})


@pytest.fixture
def read_only_client(migrated_world: World) -> Iterator[TestClient]:
    app = create_app(migrated_world.services)
    headers = {"Authorization": f"Bearer {migrated_world.key()}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client
