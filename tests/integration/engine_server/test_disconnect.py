"""A client that leaves, over real sockets: wherever its request is, the engine drops it, and the
blocks come back, as `/metrics` tells it."""

import json
import socket
from typing import Any

import pytest

from engine.server.limits import RequestLimits
from tests.engine_serving import INTERNAL_KEY, MODEL, ServedEngine, serving_engine
from tests.fakes.engine_core import FakeEngine
from tests.stack import wait_until


def send_request(
    served: ServedEngine,
    prompt: str | list[str],
    *,
    is_streamed: bool,
    path: str = "completions",
    max_tokens: int = 500,
) -> socket.socket:
    """A request on a connection of its own with small buffers; nothing is read."""
    fields: dict[str, Any] = {
        "model": MODEL,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "stream": is_streamed,
    }
    if path == "chat/completions":
        fields["messages"] = [{"role": "user", "content": fields.pop("prompt")}]
    body = json.dumps(fields).encode()
    head = (
        f"POST /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {INTERNAL_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.socket()
    connection.settimeout(20)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", served.port))
    connection.sendall(head.encode() + body)
    return connection


def num_aborted(served: ServedEngine) -> float:
    return served.metric("pincite_engine_request_success_total", finished_reason="abort")


@pytest.mark.parametrize("path", ["completions", "chat/completions"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_leaving_in_the_queue(is_streamed: bool, path: str) -> None:
    engine = FakeEngine(max_num_seqs=1)
    with serving_engine(engine) as served:
        engine.hold(after_steps=1)
        first = send_request(served, "one", is_streamed=is_streamed, path=path)
        served.wait_for("num_requests_running", 1)
        second = send_request(served, "two", is_streamed=is_streamed, path=path)
        served.wait_for("num_requests_waiting", 1)
        second.close()
        served.wait_for("num_requests_waiting", 0)
        assert served.metric("pincite_engine_num_requests_running") == 1
        first.close()
        served.wait_idle()
        assert num_aborted(served) == 2


@pytest.mark.parametrize("is_streamed", [False, True])
def test_leaving_in_prefill(is_streamed: bool) -> None:
    engine = FakeEngine(chunk=16)
    with serving_engine(engine) as served:
        engine.hold(after_steps=3)
        leaver = send_request(served, "x" * 400, is_streamed=is_streamed)
        served.wait_for("kv_cache_usage_perc", 3 / 256)
        leaver.close()
        served.wait_idle()
        assert engine.submitted[0].num_computed_tokens == 48
        assert engine.submitted[0].output_token_ids == []
        assert num_aborted(served) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
def test_leaving_in_decode(is_streamed: bool) -> None:
    engine = FakeEngine()
    with serving_engine(engine) as served:
        engine.hold(after_steps=5)
        leaver = send_request(served, "some words", is_streamed=is_streamed)
        wait_until(
            lambda: bool(engine.submitted) and len(engine.submitted[0].output_token_ids) == 5,
            timeout_s=20,
            what="five tokens",
        )
        served.wait_for("num_requests_running", 1)
        leaver.close()
        served.wait_idle()
        assert len(engine.submitted[0].output_token_ids) == 5
        assert num_aborted(served) == 1
        assert served.metric("pincite_engine_generation_tokens_total") == 5


@pytest.mark.parametrize("is_streamed", [False, True])
def test_leaving_drops_every_prompt_of_the_request(is_streamed: bool) -> None:
    engine = FakeEngine(max_num_seqs=2)
    with serving_engine(engine) as served:
        engine.hold(after_steps=2)
        leaver = send_request(served, ["a", "b", "c", "d"], is_streamed=is_streamed)
        served.wait_for("num_requests_waiting", 2)
        leaver.close()
        served.wait_idle()
        assert num_aborted(served) == 4


def test_a_reset_connection_counts_as_left() -> None:
    engine = FakeEngine()
    with serving_engine(engine) as served:
        engine.hold(after_steps=2)
        leaver = send_request(served, "some words", is_streamed=True)
        served.wait_for("num_requests_running", 1)
        leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        leaver.close()
        served.wait_idle()


def test_a_silent_stream_is_kept_alive_by_comments_that_clients_skip() -> None:
    engine = FakeEngine()
    with serving_engine(engine, limits=RequestLimits(heartbeat_s=0.02)) as served:
        engine.hold(after_steps=2)
        reader = send_request(served, "x", is_streamed=True)
        received = b""
        while received.count(b": still here\n\n") < 3:
            received += reader.recv(65536)
        engine.release()
        while b"[DONE]" not in received:
            received += reader.recv(65536)
        reader.close()
    pieces = [
        json.loads(line[6:])["choices"][0]["text"]
        for line in received.decode().splitlines()
        if line.startswith("data: {")
    ]
    assert "".join(pieces) == "you said x"


def test_others_go_on_when_one_leaves() -> None:
    engine = FakeEngine()
    with serving_engine(engine) as served, served.http() as client:
        engine.hold()
        leaver = send_request(served, "leaver", is_streamed=True)
        stayer = send_request(served, "stayer", is_streamed=False)
        served.wait_for("num_requests_waiting", 2)
        engine.hold(after_steps=3)
        served.wait_for("num_requests_running", 2)
        leaver.close()
        served.wait_for("num_requests_running", 1)
        engine.release()
        answer = b""
        while b'"finish_reason":"stop"' not in answer:
            answer += stayer.recv(65536)
        stayer.close()
        assert b"you said stayer" in answer
        served.wait_idle()
        assert client.get("/readyz").status_code == 200


def test_a_reader_that_stands_still_holds_up_nobody() -> None:
    """It reads nothing while far more than the sockets can hold is generated."""
    long = "long words for somebody who does not read " * 40
    engine = FakeEngine(reply=lambda prompt: long if "slow" in prompt else "quick", max_num_seqs=4)
    with serving_engine(engine) as served, served.http() as client:
        standing = [
            send_request(served, "slow", is_streamed=True, max_tokens=1_900) for _ in range(3)
        ]
        wait_until(lambda: len(engine.submitted) == 3, timeout_s=20, what="three slow readers")
        answer = client.post("/v1/completions", json={"model": MODEL, "prompt": "x"})
        assert answer.json()["choices"][0]["text"] == "quick"
        served.wait_idle()  # the engine is through with the slow ones' tokens, too
        assert served.metric("pincite_engine_generation_tokens_total") == 3 * len(long) + 3 + 6
        received = b""
        while b"[DONE]" not in received:
            received += standing[0].recv(65536)
        pieces = [
            json.loads(line[6:])["choices"][0]["text"]
            for line in received.decode().splitlines()
            if line.startswith("data: {")
        ]
        assert "".join(pieces) == long
        for connection in standing:
            connection.close()
