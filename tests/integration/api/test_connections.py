"""What only a real socket shows: clients that leave, stall, or send more than they may."""

import json
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, BinaryIO

import httpx
import pytest

from core.domain.access import Principal
from core.domain.documents import ObjectStat
from core.errors import NotFound
from tests.api_world import World
from tests.serving import Served, serving
from tests.stack import wait_until

QUESTION = "How often are the pumps tested?"
WAIT_S = 20.0


def request_head(path: str, secret: str, **headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {secret}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def ask(connection: socket.socket, secret: str, **body: Any) -> None:
    content = json.dumps({"question": QUESTION, **body}).encode()
    head = request_head(
        "/v1/answers", secret, Content_Type="application/json", Content_Length=str(len(content))
    )
    connection.sendall(head + content)


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        piece = connection.recv(65_536)
        assert piece, found
        found += piece
    return found


def is_stored(world: World, answer_id: str) -> bool:
    try:
        world.catalog.answers.load(world.owner(), answer_id)
    except NotFound:
        return False
    return True


@pytest.fixture
def gate(world: World) -> threading.Event:
    """Answers wait for it."""
    world.answers.gate = threading.Event()
    return world.answers.gate


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_answer(
    world: World, served: Served, gate: threading.Event, stream: bool
) -> None:
    connection = served.connect()
    ask(connection, world.key(), stream=stream)
    assert world.answers.started.wait(WAIT_S)
    if stream:
        read_until(connection, b"event: text.delta")
    connection.close()
    assert world.answers.closed.wait(WAIT_S)
    slots = served.server.config.app.state.answer_slots  # type: ignore[union-attr]
    wait_until(lambda: slots.num_taken == 0, timeout_s=WAIT_S, what="the slot")
    ((_, asked),) = world.answers.asked
    assert world.answers.num_finished == 0
    assert not is_stored(world, asked.answer_id)


@pytest.mark.parametrize("stream", [True, False])
def test_in_the_background_the_answer_goes_on(
    world: World, served: Served, gate: threading.Event, stream: bool
) -> None:
    secret = world.key()
    connection = served.connect()
    ask(connection, secret, stream=stream, background=True)
    assert world.answers.started.wait(WAIT_S)
    connection.close()
    wait_until(lambda: served.num_connections == 0, timeout_s=WAIT_S, what="the connection's end")
    assert not world.answers.closed.is_set()
    gate.set()
    assert world.answers.closed.wait(WAIT_S)
    ((_, asked),) = world.answers.asked
    assert is_stored(world, asked.answer_id)
    events = httpx.get(
        f"{served.url}/v1/answers/{asked.answer_id}/events",
        headers={"Authorization": f"Bearer {secret}", "Last-Event-ID": "1"},
    )
    assert events.text.startswith("event: text.delta\nid: 2\n")
    assert "event: answer.completed" in events.text


def test_events_arrive_while_the_answer_is_being_made(
    world: World, served: Served, gate: threading.Event
) -> None:
    with closing(served.connect()) as connection:
        ask(connection, world.key(), stream=True)
        head = read_until(connection, b"event: text.delta")
        assert b"x-accel-buffering: no" in head.lower()
        assert b"answer.completed" not in head
        assert not gate.is_set()
        gate.set()
        read_until(connection, b"event: answer.completed")


def test_silence_is_broken_by_a_comment(make_world: Callable[..., World]) -> None:
    world = make_world(api={"heartbeat_s": 0.01})
    reached, gate = threading.Event(), threading.Event()

    def slow(principal: Principal, asked: Any) -> dict[str, Any]:
        from tests.fakes.answering import plain_answer

        reached.set()
        assert gate.wait(WAIT_S)
        return plain_answer(principal, asked)

    world.answers.make = slow
    with serving(world.services) as served, closing(served.connect()) as connection:
        ask(connection, world.key(), stream=True)
        assert reached.wait(WAIT_S)
        read_until(connection, b"\n: ")
        gate.set()
        read_until(connection, b"event: answer.completed")


def test_more_streams_than_slots(make_world: Callable[..., World]) -> None:
    world = make_world(api={"max_answers": 2})
    world.answers.gate = threading.Event()
    secret = world.key()
    with serving(world.services) as served:
        held = [served.connect() for _ in range(2)]
        for connection in held:
            ask(connection, secret, stream=True)
            read_until(connection, b"event: text.delta")
        url, headers = f"{served.url}/v1/answers", {"Authorization": f"Bearer {secret}"}
        refused = httpx.post(url, json={"question": QUESTION}, headers=headers)
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
        # everything else still answers
        assert httpx.get(f"{served.url}/v1/documents", headers=headers).status_code == 200
        world.answers.gate.set()
        for connection in held:
            read_until(connection, b"event: answer.completed")
            connection.close()
        again = httpx.post(url, json={"question": QUESTION}, headers=headers)
        assert again.status_code == 200


def test_the_server_stops_although_a_stream_is_open(world: World) -> None:
    world.answers.gate = threading.Event()
    with serving(world.services) as served:
        connection = served.connect()
        ask(connection, world.key(), stream=True)
        read_until(connection, b"event: text.delta")
    connection.close()
    assert world.answers.closed.wait(WAIT_S)
    assert world.num_closed == [1]


# ------------------------------------------------------------------------------ uploads


@pytest.mark.parametrize("announces", [True, False])
@pytest.mark.parametrize("size", [10, 3_000_000])
def test_an_upload_that_breaks_off_leaves_nothing(
    world: World, served: Served, announces: bool, size: int
) -> None:
    body = b"%PDF-1.7 " + b"x" * size
    secret = world.key()
    path = "/v1/documents?collection=hr&filename=a.pdf"
    connection = served.connect()
    if announces:
        head = request_head(path, secret, Content_Length=str(len(body) + 1))
        connection.sendall(head + body)
    else:
        head = request_head(path, secret, Transfer_Encoding="chunked")
        connection.sendall(head + f"{len(body):x}\r\n".encode() + body + b"\r\n")
    slots = served.server.config.app.state.upload_slots  # type: ignore[union-attr]
    wait_until(lambda: slots.num_taken == 1, timeout_s=WAIT_S, what="the upload")
    connection.close()
    wait_until(lambda: slots.num_taken == 0, timeout_s=WAIT_S, what="the upload's end")
    assert list(world.store.keys("documents")) == []
    with world.catalog.snapshot(world.owner()) as snapshot:
        assert snapshot.documents() == ([], None)


def test_an_upload_that_stands_still_is_given_up(make_world: Callable[..., World]) -> None:
    world = make_world(api={"upload_idle_s": 0.05, "max_uploads": 1})
    secret = world.key()
    with serving(world.services) as served, closing(served.connect()) as connection:
        head = request_head(
            "/v1/documents?filename=a.pdf", secret, Content_Length="100", Expect="100-continue"
        )
        connection.sendall(head)
        read_until(connection, b"HTTP/1.1 100 Continue")
        answer = read_until(connection, b"\r\n\r\n")
        assert b"HTTP/1.1 504" in answer
        assert b"connection: close" in answer.lower() or connection.recv(65_536)
        url, headers = f"{served.url}/v1/documents", {"Authorization": f"Bearer {secret}"}
        fine = httpx.post(url, params={"filename": "b.pdf"}, content=b"%PDF", headers=headers)
        assert fine.status_code == 202
    assert list(world.store.keys("documents")) == ["default/b.pdf"]


def test_a_refusal_reaches_a_client_that_still_sends(make_world: Callable[..., World]) -> None:
    world = make_world(api={"max_upload_bytes": 100_000})
    headers = {"Authorization": f"Bearer {world.key()}"}

    def endless() -> Iterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 10_000

    with serving(world.services) as served:
        answer = httpx.post(
            f"{served.url}/v1/documents",
            params={"filename": "a.pdf"},
            content=endless(),
            headers=headers,
            timeout=WAIT_S,
        )
        assert answer.status_code == 413
        assert answer.json()["code"] == "too_large"
    assert list(world.store.keys("documents")) == []


class Drain:
    """Reads a body as the S3 store does, a part at a time, and keeps nothing."""

    PART_BYTES = 8 * 1024 * 1024

    def __init__(self, world: World) -> None:
        self._world = world
        self.num_bytes = 0

    def put(
        self, principal: Principal, bucket: str, key: str, body: BinaryIO, **_: Any
    ) -> ObjectStat:
        while part := body.read(self.PART_BYTES):
            self.num_bytes += len(part)
        return ObjectStat(bucket, key, "etag", self.num_bytes, self._world.clock.now())


@pytest.mark.parametrize("as_form", [False, True])
def test_memory_stays_bounded_while_a_hundred_megabytes_pass(
    world: World, served: Served, monkeypatch: pytest.MonkeyPatch, as_form: bool
) -> None:
    drain = Drain(world)
    monkeypatch.setattr(world.store, "put", drain.put)
    num_bytes, piece = 100_000_000, bytes(100_000)
    headers = {"Authorization": f"Bearer {world.key()}"}

    def body() -> Iterator[bytes]:
        if as_form:
            yield b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n'
        for _ in range(num_bytes // len(piece)):
            yield piece
        if as_form:
            yield b"\r\n--b--\r\n"

    if as_form:
        headers["Content-Type"] = "multipart/form-data; boundary=b"
    tracemalloc.start()
    try:
        answer = httpx.post(
            f"{served.url}/v1/documents?filename=a.pdf",
            content=body(),
            headers=headers,
            timeout=120,
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 202, answer.text
    assert drain.num_bytes == num_bytes
    assert peak < 40_000_000


# ---------------------------------------------------------------------------- the server


def test_headers_of_proxies_change_nothing(world: World, served: Served) -> None:
    assert httpx.get(f"{served.url}/metrics").status_code == 200
    for headers in (
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"X-Real-IP": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
    ):
        assert httpx.get(f"{served.url}/metrics", headers=headers).status_code == 401
    secure = httpx.get(f"{served.url}/v1/about", headers={"X-Forwarded-Proto": "https"})
    assert secure.status_code == 200


def test_head_has_no_body(world: World, served: Served) -> None:
    accepted = world.ingest(body=b"%PDF-1.7 0123456789")
    headers = {"Authorization": f"Bearer {world.key()}"}
    url = f"{served.url}/v1/documents/{accepted.document_id}/file"
    with httpx.Client(headers=headers) as client:
        head = client.head(url)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == "19"
        assert client.get(url, headers={"Range": "bytes=9-12"}).content == b"0123"


def test_a_name_in_the_address_must_be_ours(served: Served) -> None:
    answer = httpx.get(f"{served.url}/v1/about", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    with closing(served.connect()) as connection:
        connection.sendall(b"GET /v1/about HTTP/1.0\r\n\r\n")
        assert b" 421 " in read_until(connection, b"\r\n\r\n")
