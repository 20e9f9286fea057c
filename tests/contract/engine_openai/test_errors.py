"""Errors as the official client raises them: class, code, parameter, no text of exceptions."""

import threading
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.engine_serving import INTERNAL_KEY, MODEL, ServedEngine, serving_engine
from tests.fakes.engine_core import FakeEngine

SAID: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


def client_of(served: ServedEngine, key: str = INTERNAL_KEY, max_retries: int = 0) -> OpenAI:
    return OpenAI(
        base_url=served.base_url,
        api_key=key,
        max_retries=max_retries,
        timeout=30,
        http_client=httpx2.Client(trust_env=False),
    )


def error_of(call: Callable[[], object], kind: type[openai.APIStatusError]) -> dict[str, Any]:
    with pytest.raises(kind) as raised:
        call()
    body = raised.value.body
    assert isinstance(body, dict)
    assert set(body) == {"message", "type", "param", "code"}
    assert body["message"]
    return body


UNSUPPORTED_CHAT: list[tuple[str, Any]] = [
    ("n", 2),
    ("logprobs", True),
    ("top_logprobs", 3),
    ("tools", [{"type": "function", "function": {"name": "f"}}]),
    ("tool_choice", "auto"),
    ("functions", [{"name": "f"}]),
    ("function_call", "auto"),
    ("response_format", {"type": "json_object"}),
    ("logit_bias", {"50": 1}),
    ("audio", {"voice": "x", "format": "wav"}),
    ("modalities", ["text", "audio"]),
    ("prediction", {"type": "content", "content": "x"}),
    ("reasoning_effort", "high"),
    ("verbosity", "low"),
    ("web_search_options", {}),
    ("moderation", {"model": "x"}),
]
UNSUPPORTED_COMPLETION: list[tuple[str, Any]] = [
    ("n", 2),
    ("n", True),
    ("best_of", 3),
    ("echo", True),
    ("logprobs", 0),
    ("suffix", "end"),
    ("logit_bias", {"50": 1}),
]


@pytest.mark.parametrize(("name", "value"), UNSUPPORTED_CHAT)
def test_chat_parameters_we_do_not_honour_are_named(
    client: OpenAI, served: ServedEngine, name: str, value: Any
) -> None:
    num_before = len(served.engine.submitted)
    body = error_of(
        lambda: client.chat.completions.create(
            model=MODEL, messages=SAID, extra_body={name: value}
        ),
        openai.BadRequestError,
    )
    assert (body["param"], body["code"]) == (name, "unsupported_parameter")
    assert body["type"] == "invalid_request_error"
    assert name in body["message"]
    assert len(served.engine.submitted) == num_before


@pytest.mark.parametrize(("name", "value"), UNSUPPORTED_COMPLETION)
def test_completion_parameters_we_do_not_honour_are_named(
    client: OpenAI, name: str, value: Any
) -> None:
    body = error_of(
        lambda: client.completions.create(model=MODEL, prompt="x", extra_body={name: value}),
        openai.BadRequestError,
    )
    assert (body["param"], body["code"]) == (name, "unsupported_parameter")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"temprature": 0.5}, "temprature"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_completion_tokens"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 1.5}, "min_p"),
        ({"seed": 2**70}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"other": 1}}, "stream_options.other"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {
                "messages": [
                    *SAID,
                    {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
                ]
            },
            "messages[1].tool_calls",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "user", "content": "refuse me"}]}, "messages"),
        ({"pincite": {"cache_salt": 5}}, "pincite.cache_salt"),
        ({"pincite": {"shared_prefix_tokens": -1}}, "pincite.shared_prefix_tokens"),
        ({"pincite": {"other": 1}}, "pincite.other"),
        ({"pincite": "salt"}, "pincite"),
    ],
)
def test_wrong_values_are_named(client: OpenAI, changes: dict[str, Any], param: str) -> None:
    body = error_of(
        lambda: client.chat.completions.create(model=MODEL, messages=SAID, extra_body=changes),
        openai.BadRequestError,
    )
    assert body["param"] == param
    assert body["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "prompt", [[], [[]], 5, {"a": 1}, [1.5], [-1], [True], ["x"] * 65, [99_999]]
)
def test_wrong_prompts_are_named(client: OpenAI, prompt: Any) -> None:
    body = error_of(
        lambda: client.completions.create(model=MODEL, prompt=prompt), openai.BadRequestError
    )
    assert body["param"] == "prompt"


def test_a_prompt_that_cannot_fit(client: OpenAI) -> None:
    body = error_of(
        lambda: client.completions.create(model=MODEL, prompt="x" * 3_000), openai.BadRequestError
    )
    assert (body["code"], body["param"]) == ("context_length_exceeded", "prompt")


def test_another_model_does_not_exist(client: OpenAI) -> None:
    body = error_of(
        lambda: client.completions.create(model="gpt-9", prompt="x"), openai.NotFoundError
    )
    assert (body["code"], body["param"]) == ("model_not_found", "model")


@pytest.mark.parametrize("key", ["wrong", "the-internal-ke", "the-internal-keyy"])
def test_a_wrong_key(served: ServedEngine, key: str) -> None:
    with client_of(served, key) as client:
        body = error_of(client.models.list, openai.AuthenticationError)
    assert (body["code"], body["type"]) == ("invalid_api_key", "authentication_error")


def test_a_full_queue_says_when_to_come_again() -> None:
    engine = FakeEngine(max_num_seqs=1, max_waiting=1)
    with serving_engine(engine) as served, client_of(served) as client:
        engine.hold()
        ends = [
            threading.Thread(
                target=lambda: client.completions.create(model=MODEL, prompt="x"), daemon=True
            )
            for _ in range(2)
        ]
        for end in ends:
            end.start()
        served.wait_for("num_requests_waiting", 2)
        with pytest.raises(openai.RateLimitError) as raised:
            client.completions.create(model=MODEL, prompt="one too many")
        assert raised.value.code == "queue_full"
        assert raised.value.type == "rate_limit_error"
        assert raised.value.response.headers["retry-after"] == "2"
        assert served.metric("pincite_engine_admission_rejections_total") == 1
        # of several prompts, all are taken or none
        with pytest.raises(openai.RateLimitError):
            client.completions.create(model=MODEL, prompt=["a", "b", "c"])
        engine.release()
        for end in ends:
            end.join(20)
        served.wait_idle()


def test_a_client_that_retries_gets_through_a_full_queue() -> None:
    engine = FakeEngine(max_num_seqs=1, max_waiting=0)
    with serving_engine(engine) as served, client_of(served, max_retries=3) as client:
        engine.hold()
        first = threading.Thread(
            target=lambda: client.completions.create(model=MODEL, prompt="x"), daemon=True
        )
        first.start()
        served.wait_for("num_requests_waiting", 1)
        retry_after = threading.Timer(0.1, engine.release)
        retry_after.start()
        answer = client.completions.create(model=MODEL, prompt="y")
        assert answer.choices[0].text == "you said y"
        first.join(20)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_failing_engine_tells_no_exception_text(
    served: ServedEngine, client: OpenAI, is_streamed: bool
) -> None:
    served.engine.fail_next_step()

    def ask() -> None:
        answer = client.chat.completions.create(model=MODEL, messages=SAID, stream=is_streamed)
        list(answer)

    with pytest.raises(openai.APIError) as raised:
        ask()
    assert raised.value.code == "engine_error"
    assert "secret" not in str(raised.value.body)
    assert served.metric("pincite_engine_request_success_total", finished_reason="error") >= 1
    assert client.completions.create(model=MODEL, prompt="x").choices[0].text == "you said x"
