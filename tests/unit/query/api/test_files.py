"""The original bytes: versions, ranges, headers, and what happens when they are gone."""

import hashlib

import pytest
from starlette.testclient import TestClient

from core.domain.documents import Accepted
from tests.api_world import World

BODY = b"%PDF-1.7 0123456789"


@pytest.fixture
def accepted(world: World) -> Accepted:
    return world.ingest("hr/Handbuch (für alle).pdf", body=BODY)


@pytest.fixture
def path(accepted: Accepted) -> str:
    return f"/v1/documents/{accepted.document_id}/file"


def test_the_whole_file_with_headers_that_keep_it_apart(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.content == BODY
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-length"] == str(len(BODY))
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["etag"] == f'"{hashlib.sha256(BODY).hexdigest()}"'
    name = "Handbuch%20%28f%C3%BCr%20alle%29.pdf"
    assert answer.headers["content-disposition"] == f"inline; filename*=UTF-8''{name}"


def test_head_has_the_headers_and_no_body(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert head.status_code == 200
    assert head.content == b""
    assert {**head.headers, "x-request-id": ""} == {**whole.headers, "x-request-id": ""}
    assert client.head(path.replace("doc_", "doc_0")).status_code == 404


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-3", 0, 3),
        ("bytes=9-", 9, 18),
        ("bytes=9-999999999999999999", 9, 18),
        ("bytes=-4", 15, 18),
        ("bytes=-999", 0, 18),
        ("bytes=18-18", 18, 18),
    ],
)
def test_a_range_is_cut_exactly(
    client: TestClient, path: str, wanted: str, first: int, last: int
) -> None:
    answer = client.get(path, headers={"range": wanted})
    assert answer.status_code == 206
    assert answer.content == BODY[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/19"
    assert answer.headers["content-length"] == str(last - first + 1)


@pytest.mark.parametrize("wanted", ["bytes=19-", "bytes=19-30", "bytes=-0"])
def test_a_range_outside_is_a_416_that_tells_the_size(
    client: TestClient, path: str, wanted: str
) -> None:
    answer = client.get(path, headers={"range": wanted})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == "bytes */19"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "range_not_satisfiable"


@pytest.mark.parametrize(
    "wanted",
    ["", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=0-1,3-4", "chunks=0-3", "bytes=٣-٤"],
)
def test_what_is_no_single_range_gets_everything(
    client: TestClient, path: str, wanted: str
) -> None:
    answer = client.get(path, headers={b"range": wanted.encode()})
    assert answer.status_code == 200
    assert answer.content == BODY


def test_if_range_only_holds_for_the_same_version(client: TestClient, path: str) -> None:
    etag = client.get(path).headers["etag"]
    same = client.get(path, headers={"range": "bytes=0-3", "if-range": etag})
    assert same.status_code == 206
    other = client.get(path, headers={"range": "bytes=0-3", "if-range": '"other"'})
    assert other.status_code == 200
    assert other.content == BODY


def test_an_empty_file_has_no_ranges(client: TestClient, world: World) -> None:
    accepted = world.ingest("hr/empty.pdf", body=b"")
    path = f"/v1/documents/{accepted.document_id}/file"
    assert client.get(path).content == b""
    assert client.get(path, headers={"range": "bytes=0-"}).status_code == 416


def test_a_version_pins_the_bytes(client: TestClient, world: World, path: str) -> None:
    old = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    world.ingest("hr/Handbuch (für alle).pdf", body=b"%PDF-1.7 newer")
    assert client.get(path).content == b"%PDF-1.7 newer"
    assert client.get(path, params={"v": old}).content == BODY
    assert client.get(path, params={"v": f"sha256:{'0' * 64}"}).status_code == 404


@pytest.mark.parametrize("v", ["", "sha256:", "md5:" + "0" * 64, "sha256:" + "A" * 64, "0" * 64])
def test_a_version_must_look_like_one(client: TestClient, path: str, v: str) -> None:
    assert client.get(path, params={"v": v}).status_code == 400


def test_bytes_that_are_gone_are_a_410(client: TestClient, world: World, path: str) -> None:
    world.artifacts.purge(world.owner(), hashlib.sha256(BODY).hexdigest())
    for answer in (client.get(path), client.head(path)):
        assert answer.status_code == 410
    assert client.get(path).json()["code"] == "gone"


def test_a_superseded_version_that_expired_is_a_410(
    client: TestClient, world: World, path: str
) -> None:
    world.ingest("hr/Handbuch (für alle).pdf", body=b"%PDF-1.7 newer")
    world.clock.advance(3600)
    dead = world.catalog.operations.take_dead_content(retention_s=60, limit=10)
    assert len(dead) == 1
    old = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    assert client.get(path, params={"v": old}).status_code == 410
    assert client.get(path).content == b"%PDF-1.7 newer"


def test_a_document_that_is_not_ready_has_no_file_yet(client: TestClient, world: World) -> None:
    accepted = world.announce("hr/new.pdf", b"%PDF-1.7 new")
    assert client.get(f"/v1/documents/{accepted.document_id}/file").status_code == 404


def test_a_store_that_is_down_is_an_honest_error(
    client: TestClient, world: World, path: str
) -> None:
    world.store.is_down = True
    assert client.get(path).status_code == 503
