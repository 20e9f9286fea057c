"""vLLM's `/tokenize`, and what Prometheus reads."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine_serving import MODEL, ServedEngine, metric, serving_engine
from tests.fakes.engine_core import BOS, MAX_MODEL_LEN, FakeEngine

MESSAGES = [{"role": "user", "content": "hi"}]
COUNTERS = (
    "num_preemptions_total",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "prompt_tokens_total",
    "generation_tokens_total",
    "admission_rejections_total",
)
GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_inference_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "iteration_tokens_total",
)


@pytest.fixture(scope="module")
def shared() -> Iterator[ServedEngine]:
    """For tests that leave nothing behind in it."""
    with serving_engine() as running:
        yield running


def tokenize(served: ServedEngine, body: dict[str, Any]) -> dict[str, Any]:
    with served.http() as client:
        response = client.post("/tokenize", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["count"] == len(found["tokens"])
    assert found["max_model_len"] == MAX_MODEL_LEN
    return found


def test_tokens_of_a_prompt_and_of_messages(shared: ServedEngine) -> None:
    with serving_engine() as served:
        assert tokenize(served, {"prompt": "ab"})["tokens"] == [BOS, *b"ab"]
        assert tokenize(served, {"model": MODEL, "prompt": ""})["tokens"] == [BOS]
        plain = tokenize(served, {"prompt": "ab", "add_special_tokens": False})
        assert plain["tokens"] == list(b"ab")
        opened = tokenize(served, {"messages": MESSAGES})
        assert opened["tokens"] == list(b"user: hi\nassistant:\n")
        closed = tokenize(served, {"messages": MESSAGES, "add_generation_prompt": False})
        assert closed["tokens"] == list(b"user: hi\n")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "messages": MESSAGES}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"messages": MESSAGES, "chat_template": "{{ x }}"}, "chat_template"),
        ({"messages": MESSAGES, "continue_final_message": True}, "continue_final_message"),
        ({"prompt": "x", "return_token_strs": True}, "return_token_strs"),
        ({"prompt": "x", "whatever": 1}, "whatever"),
    ],
)
def test_wrong_bodies_are_named(shared: ServedEngine, body: dict[str, Any], param: str) -> None:
    with shared.http() as client:
        response = client.post("/tokenize", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == param
        other = client.post("/tokenize", json={"model": "other", "prompt": "x"})
        assert other.status_code == 404


def test_the_prompt_that_is_generated_from_has_the_tokens_that_are_counted() -> None:
    with serving_engine() as served, served.http() as client:
        counted = tokenize(served, {"messages": MESSAGES})["tokens"]
        client.post("/v1/chat/completions", json={"model": MODEL, "messages": MESSAGES})
        assert served.engine.submitted[-1].prompt_token_ids == counted


@pytest.mark.parametrize("has_aliases", [False, True])
def test_every_series_is_there_under_its_names(has_aliases: bool) -> None:
    with serving_engine(has_aliases=has_aliases) as served, served.http() as client:
        client.post("/v1/completions", json={"model": MODEL, "prompt": "x"})
        text = client.get("/metrics").text
    prefixes = ["pincite_engine_"] + ["vllm:"] * has_aliases
    assert ("vllm:" in text) == has_aliases
    assert "_created" not in text
    labels = {"model_name": MODEL, "engine": "0"}
    for prefix in prefixes:
        for name in (*GAUGES, *COUNTERS):
            metric(text, prefix + name, **labels)
        for name in HISTOGRAMS:
            for suffix in ("_bucket", "_count", "_sum"):
                metric(text, prefix + name + suffix, **labels)
        for reason in ("stop", "length", "abort", "error"):
            metric(text, prefix + "request_success_total", finished_reason=reason, **labels)
        assert metric(text, prefix + "cache_config_info", num_gpu_blocks="256", **labels) == 1
    for line in text.splitlines():
        if line.startswith(tuple(prefixes)) and "cache_config_info" not in line:
            names = {pair.split("=")[0] for pair in line.split("{")[1].split("}")[0].split(",")}
            assert names <= {"model_name", "engine", "finished_reason", "le"}


def test_the_figures_add_up() -> None:
    engine = FakeEngine(chunk=4)
    with serving_engine(engine) as served, served.http() as client:
        for limit in (3, 100):
            client.post(
                "/v1/completions", json={"model": MODEL, "prompt": "y" * 19, "max_tokens": limit}
            )
        text = client.get("/metrics").text

    def found(name: str, **labels: str) -> float:
        return metric(text, f"pincite_engine_{name}", **labels)

    whole = len("you said " + "y" * 19) + 1
    assert found("prompt_tokens_total") == 40
    assert found("generation_tokens_total") == 3 + whole
    assert found("request_success_total", finished_reason="length") == 1
    assert found("request_success_total", finished_reason="stop") == 1
    assert found("prefix_cache_queries_total") == 40
    assert found("prefix_cache_hits_total") == 16
    assert found("time_to_first_token_seconds_count") == 2
    assert found("inter_token_latency_seconds_count") == 2 + whole - 1
    assert found("inter_token_latency_seconds_sum") == (2 + whole - 1) * 0.25
    assert found("request_queue_time_seconds_sum") == 2 * 0.5
    assert found("request_prefill_time_seconds_sum") == 2 * 1.0
    assert found("request_decode_time_seconds_sum") == 2 * 2.0
    assert found("request_inference_time_seconds_sum") == 2 * 3.0
    assert found("request_prompt_tokens_sum") == 40
    assert found("request_generation_tokens_sum") == 3 + whole
    assert found("e2e_request_latency_seconds_count") == 2
    # 20 prompt tokens in chunks of 4, then 4 of them since 16 were cached; one a step after that
    assert found("iteration_tokens_total_sum") == 20 + 2 + 4 + whole - 1
    assert found("iteration_tokens_total_bucket", le="1.0") == 2 + whole - 1
    assert found("iteration_tokens_total_count") == 5 + 2 + 1 + whole - 1


def test_no_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-4711"
    with caplog.at_level("INFO"), serving_engine() as served, served.http() as client:
        for path, body in (
            ("/v1/completions", {"prompt": canary}),
            ("/v1/completions", {"prompt": canary, "temperature": canary}),
            ("/v1/completions", {"prompt": canary, canary: 1}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": canary}]}),
            ("/tokenize", {"prompt": canary}),
        ):
            client.post(path, json={"model": MODEL, **body})
        served.engine.fail_next_step()
        client.post("/v1/completions", json={"model": MODEL, "prompt": canary})
    lines = [f"{record.getMessage()} {getattr(record, 'facts', '')}" for record in caplog.records]
    requests = [line for line in lines if line.startswith("engine.request ")]
    assert len(requests) == 6
    assert "'completion_tokens': " in requests[0]
    assert canary not in json.dumps(lines)
