"""Reading a request: query strings, strict bodies, hosts and keys; and a client's deadline."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from pydantic import TypeAdapter
from qdrant_client.http import models as wire
from starlette.requests import Request

from core.errors import NotAuthenticated, NotPermitted, SettingsError, TimedOut
from pincite.servers.index.access import Access, is_loopback
from pincite.servers.index.app import in_thread
from pincite.servers.index.errors import BadRequest, UnsupportedField
from pincite.servers.index.points import check_payload
from pincite.servers.index.requests import (
    READ_PARAMETERS,
    WRITE_PARAMETERS,
    Parameters,
    parse_body,
    read_parameters,
)
from pincite.servers.index.server import ServerOptions

SCROLL: TypeAdapter[wire.ScrollRequest] = TypeAdapter(wire.ScrollRequest)


def test_parameters() -> None:
    given = [("wait", "true"), ("ordering", "strong"), ("timeout", "7")]
    assert read_parameters(given, WRITE_PARAMETERS) == Parameters(wait=True, timeout_s=7.0)
    assert read_parameters([], READ_PARAMETERS) == Parameters()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([("wait", "true")], UnsupportedField),
        ([("timeout", "1"), ("timeout", "2")], UnsupportedField),
        ([("timeout", "-1")], BadRequest),
        ([("timeout", "0")], BadRequest),
        ([("consistency", "3")], BadRequest),
    ],
)
def test_parameters_that_are_refused(given: list[tuple[str, str]], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_parameters(given, READ_PARAMETERS)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"{", b'{"limit": "1"}', b'{"limit": 1.0}', b'{"limit": true}',
     b'{"limit": NaN}', b'{"with_payload": 1}', b"\xff", b'{"a": ' * 400],
)  # fmt: skip
def test_bodies_that_are_refused(content: bytes) -> None:
    with pytest.raises(BadRequest, match="JSON body"):
        parse_body(SCROLL, content)


def test_a_word_like_nan_inside_a_string_is_a_word() -> None:
    body = parse_body(SCROLL, b'{"with_payload": ["NaN", "Infinity"]}')
    assert body.with_payload == ["NaN", "Infinity"]


def request(path: str, **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": path, "headers": raw})


def test_access_on_loopback() -> None:
    access = Access("secret")
    for host in ("localhost", "LOCALHOST:6333", "127.0.0.1:1", "[::1]:6333"):
        access.check(request("/collections", host=host, api_key="secret"))
        access.check(request("/readyz", host=host))
    for host in ("example.org", "localhost.example.org", "", "10.0.0.1"):
        with pytest.raises(NotPermitted):
            access.check(request("/readyz", host=host))
    for headers in ({}, {"api_key": "Secret"}, {"authorization": "Basic secret"}):
        with pytest.raises(NotAuthenticated):
            access.check(request("/collections", host="localhost", **headers))
    Access(None).check(request("/collections", host="localhost"))


def test_access_beyond_loopback() -> None:
    access = ServerOptions(Path("d"), host="0.0.0.0", api_key="secret").access()
    access.check(request("/collections", host="index.internal", api_key="secret"))
    with pytest.raises(NotAuthenticated):
        access.check(request("/metrics", host="index.internal"))
    named = ServerOptions(
        Path("d"), host="0.0.0.0", api_key="secret", allowed_hosts=("index",)
    ).access()
    named.check(request("/readyz", host="index:6333"))
    with pytest.raises(NotPermitted):
        named.check(request("/readyz", host="other:6333"))
    with pytest.raises(SettingsError, match="without an API key"):
        ServerOptions(Path("d"), host="192.168.0.9").access()


def test_loopback_addresses() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.1.1.1", "index", ""))


def test_payload_depth() -> None:
    def deep(levels: int) -> object:
        content: object = 1
        for level in range(levels):
            content = [content] if level % 2 else {"a": content}
        return content

    check_payload(deep(64))
    check_payload(deep(10), above=54)
    for levels, above in ((65, 0), (11, 54), (500, 0), (1, 64), (1, 900)):
        with pytest.raises(BadRequest, match="nested deeper"):
            check_payload(deep(levels), above)


async def test_a_deadline_answers_while_the_work_goes_on() -> None:
    app = FastAPI()
    app.state.threads = ThreadPoolExecutor(1)
    go_on, finished = threading.Event(), threading.Event()

    def work() -> str:
        go_on.wait(10)
        finished.set()
        return "done"

    with pytest.raises(TimedOut):
        await in_thread(app, work, Parameters(timeout_s=0.01))
    go_on.set()
    assert await asyncio.to_thread(finished.wait, 10)
    assert await in_thread(app, work, Parameters(timeout_s=10)) == "done"
    app.state.threads.shutdown()
