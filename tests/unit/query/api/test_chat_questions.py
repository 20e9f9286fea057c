"""The question in a chat request, and what is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from core.domain.generation import ChatMessage
from core.errors import InvalidInput
from query.api.chat_questions import (
    UnsupportedParameter,
    chat_question,
    is_rag_model,
    rag_model,
)
from query.api.schemas.chat import ChatRequest


def request(*messages: tuple[str, Any], **fields: Any) -> ChatRequest:
    said = [{"role": role, "content": content} for role, content in messages]
    return ChatRequest.model_validate({"model": "rag", "messages": said, **fields})


def test_the_last_user_message_is_the_question() -> None:
    found = chat_question(
        request(
            ("system", "You are a pirate."),
            ("user", "How are pumps tested?"),
            ("assistant", "Yearly."),
            ("user", "By whom?"),
        )
    )
    assert found.text == "By whom?"
    assert found.history == (
        ChatMessage("user", "How are pumps tested?"),
        ChatMessage("assistant", "Yearly."),
    )
    assert found.collections == ()


def test_history_comes_in_pairs() -> None:
    found = chat_question(
        request(
            ("assistant", "Hello, I am a greeting."),
            ("user", "never answered"),
            ("user", "asked again"),
            ("assistant", "first"),
            ("assistant", "second"),
            ("user", "last"),
        )
    )
    assert [message.content for message in found.history] == ["asked again", "second"]


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "How often"}, {"type": "text", "text": "is it?"}]
    assert chat_question(request(("user", parts))).text == "How often\nis it?"


def test_a_collection_is_named_by_the_model() -> None:
    found = chat_question(request(("user", "Why?"), model="rag/plant a/x"))
    assert found.collections == ("plant a/x",)
    named = chat_question(request(("user", "Why?"), pincite={"collections": ["a", "b"]}))
    assert named.collections == ("a", "b")
    with pytest.raises(InvalidInput, match="named twice"):
        chat_question(request(("user", "Why?"), model="rag/a", pincite={"collections": ["b"]}))
    with pytest.raises(InvalidInput, match="must be followed"):
        chat_question(request(("user", "Why?"), model="rag/"))
    assert is_rag_model(rag_model("a"))
    assert not is_rag_model("ragged")


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("n", 2),
        ("stop", "END"),
        ("stop", ["END"]),
        ("logprobs", True),
        ("tools", [{"type": "function"}]),
        ("functions", [{}]),
        ("response_format", {"type": "json_object"}),
        ("modalities", ["audio"]),
    ],
)
def test_what_would_change_the_response_is_refused_by_name(param: str, value: Any) -> None:
    with pytest.raises(UnsupportedParameter) as caught:
        chat_question(request(("user", "Why?"), **{param: value}))
    assert caught.value.context["param"] == param


def test_what_means_nothing_here_is_let_through() -> None:
    fields = {"temperature": 0.3, "top_p": 0.9, "seed": 1, "user": "u", "metadata": {}, "n": 1,
              "stop": None, "tools": [], "response_format": {"type": "text"}}  # fmt: skip
    assert chat_question(request(("user", "Why?"), **fields)).text == "Why?"


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "  ")],
        [("user", None)],
        [("system", "only")],
        [("user", "a"), ("assistant", "b")],
        [("user", [{"type": "image_url", "image_url": {"url": "x"}}])],
        [("tool", "result"), ("user", "why?")],
    ],
)
def test_without_a_question_in_words_it_is_an_error(messages: list[tuple[str, Any]]) -> None:
    with pytest.raises(InvalidInput):
        chat_question(request(*messages))


def test_our_own_options_are_strict() -> None:
    with pytest.raises(ValidationError):
        request(("user", "Why?"), pincite={"modus": "extractive"})
