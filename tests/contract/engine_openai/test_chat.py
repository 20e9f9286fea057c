"""Chat completions by the official client: whole and streamed, sync and async."""

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.engine_serving import MODEL, ServedEngine

SAID: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello there"}]


def test_a_whole_answer(client: OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=SAID, temperature=0)
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == MODEL
    assert answer._request_id
    (choice,) = answer.choices
    assert (choice.index, choice.finish_reason) == (0, "stop")
    assert choice.message.role == "assistant"
    assert choice.message.content == "you said hello there"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len("user: hello there\nassistant:\n")
    assert answer.usage.completion_tokens == len("you said hello there") + 1  # the end token
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_is_the_same_text_and_ends_with_the_reason(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model=MODEL, messages=SAID, stream=True))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "you said hello there"
    assert [
        chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason
    ] == ["stop"]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_tells_its_usage_when_asked(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=SAID, stream=True, stream_options={"include_usage": True}
        )
    )
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == len("you said hello there") + 1
    assert usage.prompt_tokens_details is not None


def test_the_stream_helper_of_the_client(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=SAID) as stream:
        stream.until_done()
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "you said hello there"


async def test_a_whole_answer_async(async_client: AsyncOpenAI) -> None:
    answer = await async_client.chat.completions.create(model=MODEL, messages=SAID)
    assert answer.choices[0].message.content == "you said hello there"


async def test_a_stream_async(async_client: AsyncOpenAI) -> None:
    stream = await async_client.chat.completions.create(model=MODEL, messages=SAID, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text == "you said hello there"


def test_characters_of_several_tokens_stay_whole(client: OpenAI) -> None:
    said: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Grüße 👋🏽 日本"}]
    chunks = client.chat.completions.create(model=MODEL, messages=said, stream=True)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(pieces) == "you said Grüße 👋🏽 日本"
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.mark.parametrize("stop", [" there", ["nothing", " there"]])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_stop_strings_end_the_output(
    client: OpenAI, stop: str | list[str], is_streamed: bool
) -> None:
    if is_streamed:
        chunks = list(
            client.chat.completions.create(model=MODEL, messages=SAID, stop=stop, stream=True)
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        reason = chunks[-1].choices[0].finish_reason
    else:
        answer = client.chat.completions.create(model=MODEL, messages=SAID, stop=stop)
        text = answer.choices[0].message.content or ""
        reason = answer.choices[0].finish_reason
    assert (text, reason) == ("you said hello", "stop")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_both_names_limit_the_output(client: OpenAI, name: str) -> None:
    answer = client.chat.completions.create(  # type: ignore[call-overload]
        model=MODEL, messages=SAID, **{name: 8}
    )
    assert answer.choices[0].message.content == "you said"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 8


def test_every_sampling_parameter_reaches_the_engine(client: OpenAI, served: ServedEngine) -> None:
    client.chat.completions.create(
        model=MODEL,
        messages=SAID,
        temperature=0.25,
        top_p=0.5,
        presence_penalty=0.75,
        frequency_penalty=-0.5,
        seed=-7,
        max_completion_tokens=9,
        stop=["x", "yz"],
        extra_body={
            "top_k": 5,
            "min_p": 0.125,
            "repetition_penalty": 1.5,
            "ignore_eos": True,
            "min_tokens": 3,
            "stop_token_ids": [65, 66],
            "include_stop_str_in_output": True,
        },
    )
    sampling = served.engine.submitted[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.25, 0.5, -7)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.75, -0.5)
    assert (sampling.max_tokens, sampling.min_tokens, sampling.stop) == (9, 3, ("x", "yz"))
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty) == (5, 0.125, 1.5)
    assert (sampling.ignore_eos, sampling.include_stop) == (True, True)
    assert sampling.stop_token_ids == (65, 66)


def test_defaults_are_those_of_openai(client: OpenAI, served: ServedEngine) -> None:
    client.chat.completions.create(model=MODEL, messages=SAID)
    sampling = served.engine.submitted[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (1.0, 1.0, None)


def test_a_conversation_with_parts_roles_and_an_echoed_answer(
    client: OpenAI, served: ServedEngine
) -> None:
    first = client.chat.completions.create(model=MODEL, messages=SAID)
    client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "be brief"},
            *SAID,
            first.choices[0].message.model_dump(),  # type: ignore[list-item]
            {
                "role": "user",
                "content": [{"type": "text", "text": "and "}, {"type": "text", "text": "now?"}],
            },
        ],
    )
    prompt = bytes(served.engine.submitted[-1].prompt_token_ids).decode()
    assert prompt == (
        "system: be brief\nuser: hello there\nassistant: you said hello there\n"
        "user: and now?\nassistant:\n"
    )


def test_harmless_parameters_are_accepted(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=SAID,
        user="u1",
        metadata={"a": "b"},
        store=False,
        n=1,
        logprobs=False,
        response_format={"type": "text"},
        service_tier="auto",
        parallel_tool_calls=True,
        tools=[],
        logit_bias={},
        modalities=["text"],
        tool_choice="none",
    )
    assert answer.choices[0].finish_reason == "stop"


def test_cached_tokens_are_told(client: OpenAI) -> None:
    said: list[ChatCompletionMessageParam] = [{"role": "user", "content": "cache " * 20}]
    prompt_tokens, cached = [], []
    for _ in range(2):
        usage = client.chat.completions.create(model=MODEL, messages=said).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        prompt_tokens.append(usage.prompt_tokens)
        cached.append(usage.prompt_tokens_details.cached_tokens)
    assert cached == [0, (prompt_tokens[0] - 1) // 16 * 16]
