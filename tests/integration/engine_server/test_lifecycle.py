"""Loading, stopping and failing: what is answered meanwhile, and how it ends."""

import json
import threading

import httpx
import pytest

from engine.config import EngineConfig
from engine.errors import ModelLoadError
from engine.server.loaded import LoadedEngine
from tests.engine_serving import MODEL, ServedEngine, serving_engine
from tests.fakes.engine_core import FakeEngine, loaded_fake
from tests.stack import wait_until

BODY = {"model": MODEL, "prompt": "x", "max_tokens": 100}
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}


def error_code(response: httpx.Response) -> str:
    return str(response.json()["error"]["code"])


def test_it_answers_while_it_loads() -> None:
    go = threading.Event()
    engine = FakeEngine()

    def load(_: EngineConfig) -> LoadedEngine:
        assert go.wait(20)
        return loaded_fake(engine)

    with serving_engine(engine, load=load, is_ready=False) as served, served.http() as client:
        try:
            assert client.get("/livez").status_code == 200
            for response in (
                client.get("/readyz"),
                client.get("/v1/models"),
                client.post("/v1/completions", json=BODY),
                client.post("/v1/chat/completions", json=CHAT),
                client.post("/tokenize", json={"prompt": "x"}),
            ):
                assert response.status_code == 503
                assert error_code(response) == "engine_loading"
                assert response.headers["retry-after"] == "2"
            assert "pincite_engine_num_requests_running" not in client.get("/metrics").text
        finally:
            go.set()
        wait_until(
            lambda: client.get("/readyz").status_code == 200, timeout_s=20, what="the engine"
        )
        assert client.post("/v1/completions", json=BODY).status_code == 200
        assert served.metric("pincite_engine_cache_config_info", block_size="16") == 1


def test_a_model_that_cannot_be_loaded_ends_the_server() -> None:
    def load(_: EngineConfig) -> LoadedEngine:
        raise ModelLoadError("no weights")

    with serving_engine(load=load, is_ready=False) as served:
        wait_until(lambda: served.server.should_exit, timeout_s=20, what="the end")
        assert str(served.service.failure) == "no weights"
        assert not served.service.was_loaded


def stream_lines(served: ServedEngine, lines: list[str], began: threading.Event) -> None:
    with (
        served.http() as client,
        client.stream("POST", "/v1/completions", json=BODY | {"stream": True}) as response,
    ):
        for line in response.iter_lines():
            lines.append(line)
            began.set()


def begin_stream(served: ServedEngine, engine: FakeEngine, lines: list[str]) -> threading.Thread:
    """A client that reads a stream into `lines`, which has begun and is held."""
    began = threading.Event()
    engine.hold(after_steps=3)
    reader = threading.Thread(target=stream_lines, args=(served, lines, began))
    reader.start()
    assert began.wait(20)
    return reader


def stop(served: ServedEngine) -> None:
    served.server.should_exit = True
    wait_until(
        lambda: served.service.state.value == "stopping", timeout_s=20, what="the stop to begin"
    )


def test_an_open_stream_may_end_while_it_stops() -> None:
    engine = FakeEngine()
    lines: list[str] = []
    with serving_engine(engine, stop_grace_s=20.0) as served:
        reader = begin_stream(served, engine, lines)
        stop(served)
        engine.release()
        reader.join(20)
    texts = [json.loads(line[6:])["choices"][0]["text"] for line in lines if "choices" in line]
    assert "".join(texts) == "you said x"
    assert "data: [DONE]" in lines


def test_a_stream_that_takes_too_long_ends_with_a_typed_error() -> None:
    engine = FakeEngine()
    lines: list[str] = []
    with serving_engine(engine, stop_grace_s=0.1) as served:
        reader = begin_stream(served, engine, lines)
        stop(served)
        reader.join(20)
        assert not reader.is_alive()
        last = [line for line in lines if line][-1]
        error = json.loads(last.removeprefix("data: "))["error"]
        assert (error["code"], error["type"]) == ("engine_stopped", "server_error")
        assert "data: [DONE]" not in lines
        wait_until(lambda: engine.stats().num_running == 0, timeout_s=20, what="free blocks")
    assert engine.is_closed


def test_a_whole_answer_that_takes_too_long_is_a_503() -> None:
    engine = FakeEngine()
    found: list[httpx.Response] = []
    with serving_engine(engine, stop_grace_s=0.1) as served:
        engine.hold(after_steps=3)

        def ask() -> None:
            with served.http() as client:
                found.append(client.post("/v1/completions", json=BODY))

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: len(engine.submitted) == 1, timeout_s=20, what="the request")
        stop(served)
        asking.join(20)
    (response,) = found
    assert response.status_code == 503
    assert error_code(response) == "engine_stopped"


def test_a_connection_that_is_kept_gets_a_503_while_it_stops() -> None:
    engine = FakeEngine()
    lines: list[str] = []
    with serving_engine(engine, stop_grace_s=20.0) as served:
        reader = begin_stream(served, engine, lines)
        connection = served.connect()
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # not complete yet
        wait_until(
            lambda: len(served.server.server_state.connections) == 2, timeout_s=20, what="both"
        )
        stop(served)
        connection.sendall(b"\r\n")
        answer = connection.recv(65536)
        connection.close()
        engine.release()
        reader.join(20)
    assert answer == b"" or b" 503 " in answer.splitlines()[0]


@pytest.mark.parametrize("is_asked", [False, True])
def test_an_engine_whose_thread_died_ends_the_server(is_asked: bool) -> None:
    """Whether or not anybody asks it again."""
    engine = FakeEngine()
    with serving_engine(engine) as served:
        engine.die()
        if is_asked:
            with served.http() as client:
                response = client.post("/v1/completions", json=BODY)
            assert response.status_code == 503
            assert error_code(response) == "engine_stopped"
        wait_until(lambda: served.server.should_exit, timeout_s=20, what="the end")
        assert served.service.was_loaded
        assert served.service.failure is not None
