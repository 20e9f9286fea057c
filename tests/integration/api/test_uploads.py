"""Uploads over a real socket: clients that leave, stall, or send more than they may."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, BinaryIO

import httpx
import pytest

from core.domain.access import Principal
from core.domain.documents import ObjectStat
from tests.api_world import World
from tests.serving import Served, serving
from tests.stack import wait_until
from tests.wire import WAIT_S, read_until, request_head


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
        while connection.recv(65_536):  # the rest of the body, then the end: it is closed
            pass
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
