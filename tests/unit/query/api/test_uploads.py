"""Uploads: names, forms, sizes, and where they go."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from query.app import create_app
from tests.api_world import World

PDF = b"%PDF-1.7 one"
MakeWorld = Callable[..., World]


def upload(client: TestClient, name: str = "a.pdf", body: bytes = PDF, **query: str) -> Any:
    return client.post("/v1/documents", params={"filename": name, **query}, content=body)


def test_a_raw_upload_is_accepted(client: TestClient, world: World) -> None:
    answer = upload(client, collection="hr")
    assert answer.status_code == 202, answer.text
    accepted = answer.json()
    assert accepted["key"] == "hr/a.pdf"
    assert accepted["version"] == "sha256:" + hashlib.sha256(PDF).hexdigest()
    assert accepted["is_new"]
    assert list(world.store.keys("documents")) == ["hr/a.pdf"]
    shown = client.get(f"/v1/documents/{accepted['document_id']}").json()
    assert shown["status"] == "queued"
    assert shown["version"] == accepted["version"]
    assert client.get(f"/v1/jobs/{accepted['job_id']}").json()["status"] == "queued"


def test_the_same_bytes_again_are_a_success_that_changes_nothing(client: TestClient) -> None:
    first, again = upload(client).json(), upload(client).json()
    assert not again["is_new"]
    assert {**again, "is_new": True} == first
    assert len(client.get("/v1/jobs").json()["data"]) == 1
    changed = upload(client, body=b"%PDF-1.7 two").json()
    assert changed["is_new"]
    assert changed["document_id"] == first["document_id"]
    assert changed["version_seq"] == first["version_seq"] + 1


def test_a_form_is_the_same_as_a_raw_body(client: TestClient, world: World) -> None:
    answer = client.post(
        "/v1/documents",
        data={"collection": "plant/manuals"},
        files={"file": ("Handbuch Prüfung.pdf", PDF, "application/pdf")},
    )
    assert answer.status_code == 202, answer.text
    assert answer.json()["key"] == "plant/manuals/Handbuch Prüfung.pdf"
    assert answer.json()["version"] == "sha256:" + hashlib.sha256(PDF).hexdigest()
    stat = world.store.head(world.owner(), "documents", "plant/manuals/Handbuch Prüfung.pdf")
    assert stat is not None
    assert (stat.size_bytes, stat.content_type) == (len(PDF), "application/pdf")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("../../x.pdf", "default/x.pdf"),
        ("..\\..\\x.pdf", "default/x.pdf"),
        ("C:\\Users\\me\\x.pdf", "default/x.pdf"),
        ("/etc/passwd", "default/passwd"),
        ("a\0b.pdf", "default/ab.pdf"),
        ("report\u202efdp.exe", "default/reportfdp.exe"),
        ("zero\u200bwidth.pdf", "default/zerowidth.pdf"),
        ("cafe\u0301.pdf", "default/caf\u00e9.pdf"),
        ("line\nbreak.pdf", "default/linebreak.pdf"),
        ("  spaces .pdf ", "default/spaces .pdf"),
        ("日本語.pdf", "default/日本語.pdf"),
    ],
)
def test_names_are_made_harmless(client: TestClient, name: str, key: str) -> None:
    assert upload(client, name).json()["key"] == key
    answer = client.post("/v1/documents", params={"filename": name}, files={"file": ("x", PDF)})
    assert answer.json()["key"] == key


@pytest.mark.parametrize(
    ("name", "collection"),
    [
        ("..", "default"),
        (".\u200b.", "default"),
        ("", "default"),
        ("\u200b", "default"),
        ("a" * 4096 + ".pdf", "default"),
        ("é" * 500, "default"),
        ("a.pdf", ".."),
        ("a.pdf", "../other"),
        ("a.pdf", "hr//x"),
        ("a.pdf", ""),
        ("folder/", "default"),
    ],
)
def test_names_that_cannot_be_made_harmless_are_refused(
    client: TestClient, world: World, name: str, collection: str
) -> None:
    answer = upload(client, name, collection=collection)
    assert answer.status_code == 400, answer.text
    assert list(world.store.keys("documents")) == []
    assert client.get("/v1/documents").json()["data"] == []


@pytest.fixture
def small_world(make_world: MakeWorld) -> World:
    """Uploads of at most 1000 bytes."""
    return make_world(api={"max_upload_bytes": 1000})


@pytest.fixture
def small(small_world: World) -> Iterator[TestClient]:
    app = create_app(small_world.services)
    headers = {"Authorization": f"Bearer {small_world.key()}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def test_the_size_limit_is_exact(small: TestClient) -> None:
    assert upload(small, body=b"x" * 1000).status_code == 202
    assert upload(small, "b.pdf", body=b"x" * 1001).status_code == 413


@pytest.mark.parametrize("as_form", [False, True])
def test_too_much_is_refused_whatever_length_was_announced(
    small: TestClient, small_world: World, as_form: bool
) -> None:
    def pieces() -> Iterator[bytes]:
        if as_form:
            yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(50):
            yield b"x" * 100

    headers = {"content-type": "multipart/form-data; boundary=b"} if as_form else {}
    answer = small.post("/v1/documents?filename=a.pdf", content=pieces(), headers=headers)
    assert "content-length" not in answer.request.headers
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"
    assert list(small_world.store.keys("documents")) == []


def test_an_announced_length_is_refused_at_once(small: TestClient, small_world: World) -> None:
    headers = {"content-length": "99999999999999999999"}
    answer = small.post("/v1/documents?filename=a.pdf", content=b"x", headers=headers)
    assert answer.status_code == 413
    assert list(small_world.store.keys("documents")) == []


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--b--"),
        ("multipart/form-data; boundary=" + "b" * 300, b"--b--"),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"no form at all"),
        ("multipart/form-data; boundary=b", b"--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n' + b"x" * 20_000,
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="%d"\r\n\r\nx\r\n' * 30,
        ),
    ],
)
def test_what_is_no_form_with_a_file_is_refused(
    client: TestClient, world: World, content_type: str, body: bytes
) -> None:
    answer = client.post("/v1/documents", content=body, headers={"content-type": content_type})
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "invalid_input"
    assert list(world.store.keys("documents")) == []


def test_uploads_go_into_the_bucket_of_the_callers_tenant(
    world: World, client: TestClient, stranger: TestClient
) -> None:
    assert upload(client).json()["bucket"] == "documents"
    assert upload(stranger).json()["bucket"] == "theirs"
    assert list(world.store.keys("theirs")) == ["default/a.pdf"]


def test_a_tenant_without_a_bucket_cannot_upload(
    world: World, open_client: Callable[[str | None], TestClient]
) -> None:
    answer = upload(open_client(world.key(tenant="a third")))
    assert answer.status_code == 403
    assert answer.json()["code"] == "not_permitted"
    assert list(world.store.keys("documents")) == []


def test_a_store_that_is_down_is_told_and_leaves_nothing(client: TestClient, world: World) -> None:
    world.store.is_down = True
    answer = upload(client)
    assert answer.status_code == 503
    assert answer.json()["code"] == "object_store_unavailable"
    assert client.get("/v1/documents").json()["data"] == []


def test_more_uploads_than_slots_are_told_to_come_back(make_world: MakeWorld) -> None:
    world = make_world(api={"max_uploads": 1})
    app = create_app(world.services)
    headers = {"Authorization": f"Bearer {world.key()}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        with app.state.upload_slots.take():
            refused = upload(client)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["code"] == "overloaded"
        assert upload(client).status_code == 202
    assert app.state.upload_slots.num_taken == 0


def test_what_the_client_says_of_the_type_is_not_believed(client: TestClient, world: World) -> None:
    said = b"text/html; charset=\xff\x01" + b"x" * 300
    answer = client.post(
        "/v1/documents?filename=a.pdf", content=PDF, headers={b"content-type": said}
    )
    assert answer.status_code == 202
    stat = world.store.head(world.owner(), "documents", "default/a.pdf")
    assert stat is not None
    assert stat.content_type is None
