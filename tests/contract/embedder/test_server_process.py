"""The model server as a process: start, questions under load, clients that hang up, and its end."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from core.adapters.embed_local import LocalEmbedder
from core.errors import ModelsUnavailable
from tests.contract.embedder.conftest import ModelServer, model_server
from tests.stack import clean_environ, wait_until

LONG = "the relief valve of the pump opens at three bar " * 20


def metric(server: ModelServer, line: str) -> float:
    """The value of one line of `/metrics`; 0 when it is not there yet."""
    text = httpx.get(f"{server.url}/metrics", trust_env=False).text
    found = [row.rsplit(" ", 1)[1] for row in text.splitlines() if row.startswith(line + " ")]
    return float(found[0]) if found else 0.0


def test_it_gives_the_vectors_of_the_model(served: ModelServer, local: LocalEmbedder) -> None:
    texts = ["How long is the notice period?", LONG, "x"]
    embedder = served.embedder()
    assert embedder.info() == local.info()
    for told, own in zip(embedder.embed_passages(texts), local.embed_passages(texts), strict=True):
        assert told == pytest.approx(own, abs=1e-5)
    embedder.close()


def test_questions_are_answered_while_passages_wait(served: ModelServer) -> None:
    """Without priority a question would be the last of 100 texts."""
    embedder = served.embedder()
    embedder.info()
    passages = threading.Thread(target=lambda: embedder.embed_passages([LONG] * 100))
    passages.start()
    waiting = 'pincite_models_waiting{level="passage"}'
    wait_until(lambda: metric(served, waiting) > 8, timeout_s=30, what="waiting passages")
    embedder.embed_questions(["How long is the notice period?"])
    assert passages.is_alive()
    passages.join()
    embedder.close()


def test_texts_of_a_client_that_hung_up_are_dropped(served: ModelServer) -> None:
    tokens = 'pincite_models_tokens_total{level="passage"}'
    aborted = 'pincite_models_requests_total{level="passage",status="499"}'
    before = metric(served, tokens)
    body = httpx.Request("POST", served.url, json={"inputs": [LONG] * 32}).content
    head = (
        f"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.api_key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    port = int(served.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(head.encode() + body)
        waiting = 'pincite_models_waiting{level="passage"}'
        wait_until(lambda: metric(served, waiting) > 8, timeout_s=30, what="waiting passages")
    wait_until(lambda: metric(served, aborted) >= 1, timeout_s=30, what="the hang-up")
    embedder = served.embedder()
    embedder.embed_passages(["after"])
    assert metric(served, tokens) - before < 32 * 150, "most of them never went through the model"
    embedder.close()


def test_a_killed_server_is_unavailable_and_comes_back_and_stops(
    tmp_path: Path, model_dir: Path
) -> None:
    server = model_server(tmp_path, model_dir)
    server.process.start()
    embedder = server.embedder()
    assert embedder.embed_questions(["why?"])
    server.process.kill()
    with pytest.raises(ModelsUnavailable):
        embedder.embed_questions(["why?"])
    server.process.start()
    assert embedder.embed_questions(["why?"])
    embedder.close()
    stopped = server.process._process
    assert stopped is not None
    stopped.terminate()
    assert stopped.wait(30) == 0, "a stop is a clean end"
    server.process.stop()
    assert "Traceback" not in server.process.log()


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The server's command line, until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "pincite.servers.models", *arguments],
        env=clean_environ() | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


KEY = {"PINCITE_MODELS__API_KEY": "key"}


def test_without_a_key_it_does_not_start(model_dir: Path) -> None:
    ended = run("--model-dir", str(model_dir))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "PINCITE_MODELS__API_KEY is not set" in ended.stderr


def test_an_open_server_is_refused_on_a_reachable_address(model_dir: Path) -> None:
    ended = run("--model-dir", str(model_dir), "--host", "0.0.0.0", "--no-auth")
    assert ended.returncode == 2
    assert "refusing to serve models" in ended.stderr


def test_an_absent_model_is_told(tmp_path: Path) -> None:
    ended = run("--model-dir", str(tmp_path / "none"), **KEY)
    assert ended.returncode == 4
    assert "no model directory" in ended.stderr


def test_changed_weights_are_refused(tmp_path: Path, model_dir: Path) -> None:
    for path in model_dir.rglob("*"):
        target = tmp_path / path.relative_to(model_dir)
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
    weights = tmp_path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    ended = run("--model-dir", str(tmp_path), **KEY)
    assert ended.returncode == 4
    assert "model.safetensors was changed" in ended.stderr
