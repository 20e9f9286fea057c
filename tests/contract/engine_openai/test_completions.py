"""Plain completions and the list of models by the official client."""

from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError, OpenAI

from tests.engine_serving import MODEL, ServedEngine
from tests.fakes.engine_core import BOS, FINGERPRINT, MAX_MODEL_LEN


def test_a_whole_completion(client: OpenAI, served: ServedEngine) -> None:
    answer = client.completions.create(model=MODEL, prompt="tick", max_tokens=50)
    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert answer.choices[0].text == "you said tick"
    assert answer.choices[0].finish_reason == "stop"
    assert served.engine.submitted[-1].prompt_token_ids == [BOS, *b"tick"]


def test_the_default_is_sixteen_tokens(client: OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="a long enough prompt")
    assert answer.choices[0].text == "you said a long "
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        (["one", "two", "three"], ["you said one", "you said two", "you said three"]),
        (list(b"ids"), ["you said ids"]),
        ([list(b"a"), list(b"bc")], ["you said a", "you said bc"]),
    ],
)
def test_every_kind_of_prompt(client: OpenAI, prompt: Any, texts: list[str]) -> None:
    answer = client.completions.create(model=MODEL, prompt=prompt)
    assert [choice.text for choice in answer.choices] == texts
    assert [choice.index for choice in answer.choices] == list(range(len(texts)))
    assert answer.usage is not None
    assert answer.usage.completion_tokens == sum(len(text) + 1 for text in texts)


def test_prompts_of_one_stream_are_told_apart(client: OpenAI) -> None:
    texts = {0: "", 1: "", 2: ""}
    reasons = {}
    usage = None
    for chunk in client.completions.create(
        model=MODEL,
        prompt=["one", "two", "three"],
        stream=True,
        stream_options={"include_usage": True},
    ):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            if choice.finish_reason:
                reasons[choice.index] = choice.finish_reason
        usage = chunk.usage
    assert texts == {0: "you said one", 1: "you said two", 2: "you said three"}
    assert reasons == dict.fromkeys(range(3), "stop")
    assert usage is not None
    assert usage.prompt_tokens == len("onetwothree") + 3


async def test_a_stream_async(async_client: AsyncOpenAI) -> None:
    stream = await async_client.completions.create(model=MODEL, prompt="x", stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "you said x"


def test_models_tell_length_fingerprint_and_capabilities(client: OpenAI) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.object) == (MODEL, "model")
    extra = model.model_extra
    assert extra is not None
    assert extra["max_model_len"] == MAX_MODEL_LEN
    assert extra["pincite"] == {
        "fingerprint": FINGERPRINT,
        "capabilities": ["cache_salt", "tokenize"],
    }
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(NotFoundError):
        client.models.retrieve("another/model")
