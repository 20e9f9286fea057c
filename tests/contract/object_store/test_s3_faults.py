"""How the S3 adapter tells a server that is down, slow to finish, or refuses us."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.adapters.object_store_s3 import S3ObjectStore
from core.domain.access import Principal
from core.domain.documents import ObjectStat
from core.errors import InvalidInput, ObjectStoreUnavailable
from core.settings import ObjectsSettings
from tests.stack import free_ports

TENANT_IDS = {"documents": "ten_a"}


@contextmanager
def answering(response: bytes) -> Iterator[str]:
    """A server that says the same bytes to whoever connects, then closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(response)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def store_at(endpoint: str) -> S3ObjectStore:
    return S3ObjectStore(
        ObjectsSettings(
            endpoint=endpoint,
            access_key="key",
            secret_key="secret",  # type: ignore[arg-type]  # pydantic wraps it
            timeout_s=5,
        ),
        TENANT_IDS,
    )


def test_nobody_listens(owner: Principal) -> None:
    (port,) = free_ports(1)
    store = store_at(f"http://127.0.0.1:{port}")
    for attempt in (
        lambda: store.head(owner, "documents", "a"),
        lambda: list(store.list(owner, "documents")),
        lambda: store.put(owner, "documents", "a", b"x"),
    ):
        with pytest.raises(ObjectStoreUnavailable):
            attempt()


def test_a_body_that_ends_early_is_no_shorter_object(
    owner: Principal, target: Callable[[], Path]
) -> None:
    stat = ObjectStat("documents", "a", "abc", 1000, datetime(2026, 1, 1, tzinfo=UTC))
    response = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"abc\"\r\n"
        b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n" + b"x" * 400
    )  # fmt: skip
    with answering(response) as endpoint, pytest.raises(ObjectStoreUnavailable):
        store_at(endpoint).download(owner, stat, target(), max_bytes=10_000)


@pytest.mark.parametrize(
    ("status", "code"), [(503, "SlowDown"), (500, "InternalError"), (403, "AccessDenied")]
)
def test_refusals_and_failures_are_unavailability(owner: Principal, status: int, code: str) -> None:
    body = f"<Error><Code>{code}</Code><Message>secret detail</Message></Error>".encode()
    response = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with answering(response) as endpoint, pytest.raises(ObjectStoreUnavailable) as raised:
        list(store_at(endpoint).list(owner, "documents"))
    assert code in raised.value.message
    assert "secret detail" not in raised.value.message
    assert (raised.value.hint is not None) == (status == 403)


@pytest.mark.parametrize("key", ["../up.pdf", "a/./b.pdf", "x" * 1100])
def test_a_name_that_the_store_refuses_is_not_its_failure(
    owner: Principal, s3_settings: ObjectsSettings, key: str
) -> None:
    with pytest.raises(InvalidInput):
        S3ObjectStore(s3_settings, TENANT_IDS).put(owner, "documents", key, b"x")


def test_a_listing_of_a_missing_bucket_is_not_an_empty_one(
    owner: Principal, s3_settings: ObjectsSettings
) -> None:
    store = S3ObjectStore(s3_settings, {"no-such-bucket": "ten_a"})
    for attempt in (
        lambda: list(store.list(owner, "no-such-bucket")),
        lambda: store.read(owner, "no-such-bucket", "a"),
    ):
        with pytest.raises(ObjectStoreUnavailable, match="no bucket"):
            attempt()


def test_a_listing_that_breaks_off_raises(owner: Principal, s3_settings: ObjectsSettings) -> None:
    """The first page is served, the second never comes."""
    page = (
        b"<ListBucketResult><IsTruncated>true</IsTruncated>"
        b"<NextContinuationToken>next</NextContinuationToken><Contents><Key>a</Key><Size>1</Size>"
        b"<ETag>x</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
        b"</ListBucketResult>"
    )
    responses = [f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\n\r\n".encode() + page]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                if responses:
                    connection.sendall(responses.pop())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    store = store_at(f"http://127.0.0.1:{listener.getsockname()[1]}")
    listing = store.list(owner, "documents")
    assert next(listing).key == "a"
    with pytest.raises(ObjectStoreUnavailable):
        next(listing)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def test_the_client_is_made_anew_after_a_fork(
    owner: Principal, s3_settings: ObjectsSettings
) -> None:
    """Both processes use the store at once; sharing a connection would mix their answers up."""
    store = S3ObjectStore(s3_settings, TENANT_IDS)
    store.put(owner, "documents", "forked", b"from the parent")
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        found = b"?"
        try:
            found = store.read(owner, "documents", "forked")
        finally:
            os.write(writable, found)
            os._exit(0)
    os.close(writable)
    assert store.read(owner, "documents", "forked") == b"from the parent"
    with os.fdopen(readable, "rb") as pipe:
        assert pipe.read() == b"from the parent"
    os.waitpid(child, 0)
    store.delete(owner, "documents", "forked")
