"""`python -m engine.server` as a process with the real SmolLM2, asked by the official client and by
real sockets."""

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.embedded_stack import models_source
from tests.engine_serving import metric
from tests.stack import ROOT, Server, clean_environ, free_ports, http_status, wait_until

KEY = "key-of-the-test"
SYSTEM = "You answer in one short sentence. " + " ".join(
    f"Rule {number}: mention nothing that is not asked for." for number in range(30)
)
LONG_PROMPT = "a river, a bridge, a town; " * 350
MAX_RESIDENT_BYTES = 900_000_000

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@dataclass
class RealEngine:
    server: Server
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def metrics(self) -> str:
        return httpx2.get(f"{self.url}/metrics", trust_env=False, timeout=20).text

    def metric(self, name: str, **labels: str) -> float:
        return metric(self.metrics(), f"pincite_engine_{name}", **labels)

    def wait_idle(self) -> None:
        def is_idle() -> bool:
            text = self.metrics()
            names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
            return not any(metric(text, f"pincite_engine_{name}") for name in names)

        wait_until(is_idle, timeout_s=30, what="free blocks")

    def send(self, prompt: str, *, is_streamed: bool, max_tokens: int = 400) -> socket.socket:
        body = json.dumps(
            {
                "model": "smollm2",
                "prompt": prompt,
                "max_tokens": max_tokens,
                "stream": is_streamed,
                "ignore_eos": True,
            }
        ).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(head.encode() + body)
        return connection


def engine_server(folder: Path, *options: str) -> RealEngine:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "engine.server", "--model", str(models_source() / "smollm2")]
    command += ["--port", str(port), "--threads", "1", "--log-format", "json", *options]
    server = Server(
        "engine",
        command,
        folder,
        lambda: http_status(f"http://127.0.0.1:{port}/readyz") == 200,
        environ={"PINCITE_ENGINE__API_KEY": KEY},
    )
    return RealEngine(server, port)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """Two at a time, small steps: so that a request can be caught in each phase."""
    made = engine_server(
        tmp_path_factory.mktemp("engine"),
        *("--max-num-seqs", "2", "--max-num-batched-tokens", "32", "--max-waiting", "4"),
        *("--num-blocks", "256"),
    )
    started = time.monotonic()
    made.server.start()
    log.info("start to ready: %.1f s", time.monotonic() - started)
    yield made
    made.server.stop()


@pytest.fixture
def client(engine: RealEngine) -> Iterator[OpenAI]:
    http_client = httpx2.Client(trust_env=False)
    with OpenAI(
        base_url=f"{engine.url}/v1",
        api_key=KEY,
        max_retries=0,
        timeout=120,
        http_client=http_client,
    ) as made:
        yield made


def asked(question: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def test_an_answer_is_the_same_whole_and_streamed(client: OpenAI) -> None:
    said = asked("What is the capital of France?")
    answer = client.chat.completions.create(
        model="smollm2", messages=said, max_tokens=24, temperature=0
    )
    whole = answer.choices[0].message.content or ""
    assert "Paris" in whole
    chunks = client.chat.completions.create(
        model="smollm2", messages=said, max_tokens=24, temperature=0, stream=True
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole


def test_a_second_question_finds_the_system_prompt_in_the_cache(
    client: OpenAI, engine: RealEngine
) -> None:
    cached: list[int | None] = []
    first_token_s: list[float] = []
    for question in ("How tall is a door?", "How deep is a bath?"):
        started = time.monotonic()
        stream = client.chat.completions.create(
            model="smollm2",
            messages=asked(question),
            max_tokens=4,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"pincite": {"cache_salt": "cached-system-prompt"}},
        )
        usage = None
        for chunk in stream:
            if (
                chunk.choices
                and chunk.choices[0].delta.content
                and len(first_token_s) == len(cached)
            ):
                first_token_s.append(time.monotonic() - started)
            usage = chunk.usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        cached.append(usage.prompt_tokens_details.cached_tokens)
    assert cached[0] == 0
    assert cached[1] is not None
    assert cached[1] >= 288
    log.info("first token: %.2f s, then %.2f s", *first_token_s)


def test_counted_tokens_are_those_of_the_prompt(client: OpenAI, engine: RealEngine) -> None:
    said = asked("What is the capital of Peru?")
    counted = httpx2.post(
        f"{engine.url}/tokenize",
        json={"messages": said},
        headers={"Authorization": f"Bearer {KEY}"},
        trust_env=False,
        timeout=20,
    ).json()
    answer = client.chat.completions.create(model="smollm2", messages=said, max_tokens=1)
    assert answer.usage is not None
    assert counted["count"] == answer.usage.prompt_tokens
    assert counted["max_model_len"] > counted["count"]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_blocks_come_back_when_clients_leave_in_decode_prefill_and_queue(
    engine: RealEngine, is_streamed: bool
) -> None:
    aborted = engine.metric("request_success_total", finished_reason="abort")
    generated = engine.metric("generation_tokens_total")
    with ExitStack() as leaving:

        def send(prompt: str) -> None:
            leaving.callback(engine.send(prompt, is_streamed=is_streamed).close)

        send("Once upon a time")
        wait_until(
            lambda: engine.metric("generation_tokens_total") > generated + 3,
            timeout_s=60,
            what="tokens",
        )
        prompt_tokens = engine.metric("prompt_tokens_total")
        send(f"{is_streamed} {LONG_PROMPT}")
        wait_until(lambda: engine.metric("num_requests_running") == 2, timeout_s=60, what="two")
        send("never begun")
        wait_until(lambda: engine.metric("num_requests_waiting") == 1, timeout_s=60, what="one")
        assert engine.metric("prompt_tokens_total") == prompt_tokens  # still in prefill
        assert engine.metric("kv_cache_usage_perc") > 0
    engine.wait_idle()
    assert engine.metric("request_success_total", finished_reason="abort") == aborted + 3


def test_memory_stays_within_its_bound_after_work(engine: RealEngine, client: OpenAI) -> None:
    client.completions.create(model="smollm2", prompt=["x " * 300] * 4, max_tokens=20)
    resident = psutil.Process(engine.server.pid).memory_info().rss
    log.info("resident: %.0f MB", resident / 1e6)
    assert resident < MAX_RESIDENT_BYTES


def test_a_stop_ends_an_open_stream_with_an_error_and_the_process_with_0(tmp_path: Path) -> None:
    engine = engine_server(tmp_path, "--stop-grace-s", "0.2")
    engine.server.start()
    try:
        connection = engine.send("Once upon a time", is_streamed=True, max_tokens=2_000)
        received = connection.recv(65536)
        while b"data: {" not in received:
            received += connection.recv(65536)
        process = psutil.Process(engine.server.pid)
        process.send_signal(signal.SIGTERM)
        while piece := connection.recv(65536):
            received += piece
        connection.close()
        assert b'"code":"engine_stopped"' in received
        assert b"[DONE]" not in received
        assert engine.server.exit_status(20) == 0
        log = [json.loads(line) for line in engine.server.log().splitlines()]
        assert any(line["event"] == "engine.request" for line in log)
        assert "Once upon" not in engine.server.log()
    finally:
        engine.server.kill()


def run_to_end(
    arguments: Sequence[str], environ: dict[str, str], program: Sequence[str] = ("engine.server",)
) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-m", *program, *arguments],
        env=clean_environ() | environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr


def test_a_model_that_is_not_there_ends_with_status_4(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    missing = str(tmp_path / "nothing")
    status, said = run_to_end(["--model", missing, "--port", str(port), "--no-auth"], {})
    assert (status, "cannot load the model" in said) == (4, True), said
    assert "Traceback" not in said


def test_an_open_server_is_refused_beyond_loopback(tmp_path: Path) -> None:
    arguments = ["--model", str(tmp_path), "--host", "0.0.0.0", "--no-auth"]
    status, said = run_to_end(arguments, {})
    assert (status, "without an API key" in said) == (2, True), said
    status, said = run_to_end(["--model", str(tmp_path)], {})
    assert (status, "PINCITE_ENGINE__API_KEY is not set" in said) == (2, True), said


def test_the_command_line_of_pincite_runs_the_same_server(tmp_path: Path) -> None:
    program = ("pincite.cli", "serve", "engine")
    status, said = run_to_end(["--model", str(tmp_path)], {}, program)
    assert (status, "PINCITE_ENGINE__API_KEY is not set" in said) == (2, True), said
    status, said = run_to_end(["--modle", "x"], {}, program)
    assert (status, "usage: python -m engine.server" in said) == (2, True), said


def test_a_taken_port_ends_with_status_3(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        model = str(models_source() / "smollm2")
        status, said = run_to_end(["--model", model, "--port", port, "--no-auth"], {})
    assert (status, "address already in use" in said) == (3, True), said
