"""`rag` models through the official client: any OpenAI client is a client of the documents."""

from typing import Any

import pytest
from openai import APIStatusError, APITimeoutError, NotFoundError, OpenAI, RateLimitError

from core.domain.access import Principal
from core.domain.generation import ChatMessage
from core.errors import GeneratorUnavailable, Overloaded
from query.services import Asked
from tests.api_world import World
from tests.fakes.answering import plain_answer
from tests.serving import Served
from tests.stack import wait_until

TEXT = "“Pumps are tested yearly.” [1]"


def cited(principal: Principal, asked: Asked) -> dict[str, Any]:
    return plain_answer(principal, asked) | {
        "answer_status": "answered",
        "text": TEXT,
        "missing": [],
        "citations": [
            {"id": "c1", "n": 1, "start": 1, "end": 25, "marker": {"start": 27, "end": 30},
             "verdict": "supported", "support_score": 1.0,
             "sources": [{"source_id": "s1", "quote": "Pumps are tested\nyearly.",
                          "locations": [{"page": 7, "start": 3, "end": 27, "rects": []}]}]}
        ],
        "sources": [
            {"id": "s1", "document_id": "doc_1", "version": "sha256:ab", "title": "Manual.pdf",
             "view_url": "/view/doc_1?v=sha256:ab&answer=old&cite=c9&page=1"}
        ],
        "usage": {"prompt_tokens": 40, "cached_tokens": 32, "completion_tokens": 8,
                  "draft_tokens": 0, "accepted_tokens": 0},
    }  # fmt: skip


def test_a_whole_answer_with_annotations(openai: OpenAI, world: World, served: Served) -> None:
    world.answers.make = cited
    completion = openai.chat.completions.create(
        model="rag",
        messages=[
            {"role": "system", "content": "Answer like a pirate."},
            {"role": "user", "content": "How is the relief valve tested?"},
            {"role": "assistant", "content": "With nitrogen."},
            {"role": "user", "content": "How often?"},
        ],
        temperature=0.2,
        max_tokens=50,
    )
    (choice,) = completion.choices
    assert choice.message.content == TEXT
    assert choice.finish_reason == "stop"
    assert choice.message.annotations is not None
    (annotation,) = choice.message.annotations
    found = annotation.url_citation
    assert TEXT[found.start_index : found.end_index] == "Pumps are tested yearly."
    assert found.title == "Manual.pdf"
    answer_id = completion.id.removeprefix("chatcmpl-")
    assert found.url == (f"{served.url}/view/doc_1?v=sha256:ab&answer={answer_id}&cite=c1&page=7")
    assert completion.usage is not None
    assert completion.usage.total_tokens == 48
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 32
    ((_, asked),) = world.answers.asked
    assert asked.question == "How often?"
    assert asked.history == (
        ChatMessage("user", "How is the relief valve tested?"),
        ChatMessage("assistant", "With nitrogen."),
    )
    assert "valve" in asked.standalone
    assert asked.max_tokens == 50
    assert world.catalog.answers.load(world.owner(), answer_id)["text"] == TEXT


def test_a_stream_says_the_same(openai: OpenAI, world: World) -> None:
    world.answers.make = cited
    stream = openai.chat.completions.create(
        model="rag",
        messages=[{"role": "user", "content": "How often?"}],
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"pincite": {"include_answer": True, "mode": "extractive"}},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == TEXT
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({chunk.id for chunk in chunks}) == 1
    finished = [c for c in chunks if c.choices and c.choices[0].finish_reason]
    assert [c.choices[0].finish_reason for c in finished] == ["stop"]
    whole = finished[0].model_extra
    assert whole is not None
    assert whole["pincite"]["citations"][0]["n"] == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert world.answers.asked[0][1].mode == "extractive"


def test_a_collection_is_a_model_of_its_own(openai: OpenAI, world: World) -> None:
    world.ingest("hr/handbook.pdf")
    names = [model.id for model in openai.models.list()]
    assert names == ["rag", "rag/hr", "tiny"]
    assert openai.models.retrieve("rag/hr").owned_by == "pincite"
    openai.chat.completions.create(
        model="rag/hr", messages=[{"role": "user", "content": "How often?"}]
    )
    assert world.answers.asked[0][1].collections == ("hr",)
    with pytest.raises(NotFoundError) as caught:
        openai.chat.completions.create(
            model="rag/secret", messages=[{"role": "user", "content": "How often?"}]
        )
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"


def test_a_key_of_one_collection_has_no_other_models(world: World, served: Served) -> None:
    world.ingest("hr/handbook.pdf")
    world.ingest("plant/manual.pdf", ["The pumps are tested weekly."])
    key = world.key(collections=["hr"])
    with OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0) as narrow:
        assert "rag/plant" not in [model.id for model in narrow.models.list()]
        with pytest.raises(NotFoundError):
            narrow.chat.completions.create(
                model="rag/plant", messages=[{"role": "user", "content": "How often?"}]
            )


def test_other_names_are_the_language_models(openai: OpenAI, world: World) -> None:
    completion = openai.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "hello"}],
        temperature=0.5,
        extra_body={"pincite": {"collections": []}},
    )
    assert completion.choices[0].message.content == "echo: hello"
    assert world.answers.asked == []
    assert world.chat_proxy.bodies[0]["temperature"] == 0.5
    wait_until(lambda: world.chat_proxy.num_open == 0, timeout_s=20, what="the end of it")
    with pytest.raises(NotFoundError) as caught:
        openai.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "model_not_found"


def test_a_client_that_leaves_ends_the_generation(world: World, served: Served) -> None:
    """Also one that has not begun to answer."""
    world.chat_proxy.is_silent = True
    client = OpenAI(base_url=f"{served.url}/v1", api_key=world.key(), max_retries=0, timeout=1.0)
    with client, pytest.raises(APITimeoutError):
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}])
    assert len(world.chat_proxy.bodies) == 1
    wait_until(lambda: world.chat_proxy.num_open == 0, timeout_s=20, what="the end of it")


def test_callers_do_not_share_a_salt(world: World, served: Served) -> None:
    for tenant in ("default", "other"):
        key = world.key(tenant=tenant)
        with OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0) as client:
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "hello"}]
            )
    assert len(set(world.chat_proxy.salts)) == 2
    assert all(salt and "default" not in salt for salt in world.chat_proxy.salts)


def test_without_the_language_model_documents_still_answer(openai: OpenAI, world: World) -> None:
    world.chat_proxy.is_down = True
    assert [model.id for model in openai.models.list()] == ["rag"]
    openai.chat.completions.create(model="rag", messages=[{"role": "user", "content": "How?"}])
    with pytest.raises(APIStatusError) as caught:
        openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}])
    assert caught.value.status_code == 503
    assert caught.value.code == "generator_unavailable"


def test_errors_have_openais_shape(openai: OpenAI, world: World) -> None:
    with pytest.raises(APIStatusError) as unsupported:
        openai.chat.completions.create(
            model="rag", messages=[{"role": "user", "content": "How?"}], n=3
        )
    assert (unsupported.value.status_code, unsupported.value.param) == (400, "n")
    assert unsupported.value.code == "unsupported_parameter"
    world.answers.error = Overloaded("too many questions at once", retry_after_s=3)
    with pytest.raises(RateLimitError) as limited:
        openai.chat.completions.create(model="rag", messages=[{"role": "user", "content": "How?"}])
    assert limited.value.response.headers["retry-after"] == "3"
    world.answers.error = None
    world.answers.late_error = GeneratorUnavailable("gone")
    with pytest.raises(APIStatusError) as late:
        openai.chat.completions.create(model="rag", messages=[{"role": "user", "content": "How?"}])
    assert late.value.status_code == 503
    with pytest.raises(Exception, match="gone"):
        list(
            openai.chat.completions.create(
                model="rag", messages=[{"role": "user", "content": "How?"}], stream=True
            )
        )


def test_a_wrong_key_is_told_in_openais_shape(served: Served) -> None:
    client = OpenAI(base_url=f"{served.url}/v1", api_key="wrong", max_retries=0)
    with client, pytest.raises(APIStatusError) as caught:
        client.models.list()
    assert caught.value.status_code == 401
    assert caught.value.code == "not_authenticated"
