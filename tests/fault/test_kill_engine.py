"""kill -9 of the engine in the running stack, also while it writes an answer: what was sent is what
is stored, quotes stand in while it is away, it comes back, and nothing else notices."""

import json
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.embedded_stack import EmbeddedStack, running_stack
from tests.sample_pdfs import report_pdf
from tests.stack import http_status, wait_until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
QUESTION = "How many litres were measured at pump P013 on sheet 2?"
ANSWER = "93 litres"
MAX_TRIES = 6
RECOVERY_S = 60.0  # the promise is 10 s on a machine of its own; the log tells what it was


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStack]:
    with running_stack(tmp_path_factory) as running:
        yield running


def ask(stack: EmbeddedStack, key: str) -> httpx.Response:
    return httpx.post(
        f"http://127.0.0.1:{stack.port(9)}/v1/completions",
        json={"model": "smollm2", "prompt": "One, two,", "max_tokens": 4, "temperature": 0},
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
        timeout=60,
    )


def is_ready(stack: EmbeddedStack) -> bool:
    return http_status(f"http://127.0.0.1:{stack.port(9)}/readyz") == 200


def test_only_its_key_opens_the_engine(stack: EmbeddedStack) -> None:
    secrets = stack.secrets()
    assert ask(stack, secrets["engine_key"]).status_code == 200
    for wrong in ("x", secrets["admin_key"], secrets["models_key"]):
        assert ask(stack, wrong).status_code == 401


def test_a_killed_engine_comes_back_and_nothing_else_notices(stack: EmbeddedStack) -> None:
    key = stack.secrets()["engine_key"]
    before = stack.processes()
    text = ask(stack, key).json()["choices"][0]["text"]
    before["engine"].kill()
    killed = time.monotonic()
    wait_until(lambda: not is_ready(stack), timeout_s=10, what="the fault to be felt")
    with stack.client() as client:
        client.ask("Is anything here?")  # quotes need no engine
    wait_until(lambda: is_ready(stack), timeout_s=RECOVERY_S, what="another engine")
    log.info("ready again after %.1f s", time.monotonic() - killed)
    after = stack.processes()
    assert after["engine"].pid != before["engine"].pid
    assert {name: process.pid for name, process in after.items() if name != "engine"} == {
        name: process.pid for name, process in before.items() if name != "engine"
    }
    assert ask(stack, key).json()["choices"][0]["text"] == text
    resident = sum(process.memory_info().rss for process in _families(after.values()))
    log.info("resident, all processes: %.0f MB", resident / 1e6)
    log.info("resident, engine: %.0f MB", after["engine"].memory_info().rss / 1e6)


def _families(processes: Iterable[psutil.Process]) -> Iterator[psutil.Process]:
    for process in processes:
        yield process
        yield from process.children(recursive=True)


def test_an_answer_whose_engine_is_killed_ends_as_it_was_sent(stack: EmbeddedStack) -> None:
    ingest(stack)
    others = {name: p.pid for name, p in stack.processes().items() if name != "engine"}
    events: list[dict[str, Any]] = []
    for _ in range(MAX_TRIES):
        wait_until(lambda: is_ready(stack), timeout_s=RECOVERY_S, what="the engine")
        events = ask_and_kill(stack)
        if events[-1]["type"] == "error":  # it was still writing
            break
    else:
        pytest.fail(f"the engine was never caught while it wrote: {events[-1]}")
    assert events[-1]["code"] == "generator_unavailable"
    assert events[-1]["retryable"] is True
    sent = "".join(event["delta"] for event in events if event["type"] == "text.delta")
    assert sent
    with stack.client() as client:
        stored = client._call("GET", f"/v1/answers/{events[0]['id']}")
        assert (stored["text"], stored["answer_status"]) == (sent, "error")
        away = client.ask(QUESTION, mode="generative")  # it may be back already
        assert away["mode"] == "generative" or ANSWER in away["text"]
        wait_until(lambda: is_ready(stack), timeout_s=RECOVERY_S, what="the engine")
        written = wait_written(stack)
    assert written["usage"]["completion_tokens"] > 0
    assert {n: p.pid for n, p in stack.processes().items() if n != "engine"} == others


def ingest(stack: EmbeddedStack) -> None:
    client = stack.s3()
    for number in range(12, 15):
        body = report_pdf(number, num_pages=3)
        client.put_object(Bucket="documents", Key=f"stations/report-{number}.pdf", Body=body)
    client.close()
    stack.wait_final(3, timeout_s=120)


def ask_and_kill(stack: EmbeddedStack) -> list[dict[str, Any]]:
    """The events of a written answer whose engine is killed at its first words."""
    engine = stack.processes()["engine"]
    events: list[dict[str, Any]] = []
    with httpx.stream(
        "POST",
        f"http://127.0.0.1:{stack.port(0)}/v1/answers",
        headers={"Authorization": f"Bearer {stack.secrets()['admin_key']}"},
        json={"question": QUESTION, "mode": "generative", "stream": True},
        trust_env=False,
        timeout=120,
    ) as response:
        for line in response.iter_lines():
            if not line.startswith("data: "):
                continue
            events.append(json.loads(line.removeprefix("data: ")))
            if events[-1]["type"] == "text.delta":
                engine.kill()  # again and again does no harm
    assert any(event["type"] == "text.delta" for event in events), events
    return events


def wait_written(stack: EmbeddedStack) -> dict[str, Any]:
    """A written answer, once the API has noticed that the engine is back."""
    answers: list[dict[str, Any]] = []

    def is_written() -> bool:
        with stack.client() as client:
            answers.append(client.ask(QUESTION, mode="generative"))
        return bool(answers[-1]["mode"] == "generative")

    wait_until(is_written, timeout_s=RECOVERY_S, what="a written answer")
    return answers[-1]
