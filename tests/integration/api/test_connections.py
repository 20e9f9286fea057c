"""What only a real socket shows: clients that leave, stall, or send more than they may."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx
import pytest

from core.domain.access import Principal
from core.errors import NotFound
from tests.api_world import World
from tests.serving import Served, serving
from tests.stack import wait_until
from tests.wire import WAIT_S, ask, read_until


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
        refused = httpx.post(url, json={"question": "When?"}, headers=headers)
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
        # everything else still answers
        assert httpx.get(f"{served.url}/v1/documents", headers=headers).status_code == 200
        world.answers.gate.set()
        for connection in held:
            read_until(connection, b"event: answer.completed")
            connection.close()
        again = httpx.post(url, json={"question": "When?"}, headers=headers)
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
