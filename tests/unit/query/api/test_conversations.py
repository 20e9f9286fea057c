"""Conversations over HTTP, and follow-ups in them."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from core.domain.generation import ChatMessage
from tests.api_world import World
from tests.fakes.answering import plain_answer

URL = "/v1/conversations"


@pytest.fixture
def thread(client: TestClient) -> str:
    made = client.post(URL, json={})
    assert made.status_code == 201
    return str(made.json()["id"])


def ask(client: TestClient, question: str, thread: str | None) -> Any:
    return client.post("/v1/answers", json={"question": question, "conversation_id": thread})


def test_earlier_turns_come_with_the_question(
    client: TestClient, world: World, thread: str
) -> None:
    world.answers.make = answers_in_order("Yearly.", "By an engineer.")
    ask(client, "How often is the relief valve tested?", thread)
    world.clock.advance(1)
    ask(client, "And by whom?", thread)
    (_, first), (_, second) = world.answers.asked
    assert (first.history, first.standalone, first.conversation_id) == ((), "", thread)
    assert second.history == (
        ChatMessage("user", "How often is the relief valve tested?"),
        ChatMessage("assistant", "Yearly."),
    )
    assert second.standalone.startswith("And by whom?")
    assert "valve" in second.standalone
    listed = client.get(f"{URL}/{thread}/answers").json()["data"]
    assert [turn["text"] for turn in listed] == ["Yearly.", "By an engineer."]
    shown = client.get(f"{URL}/{thread}").json()
    assert (shown["title"], shown["num_answers"]) == ("How often is the relief valve tested?", 2)


def answers_in_order(*texts: str) -> Any:
    left = list(texts)

    def make(principal: Any, asked: Any) -> dict[str, Any]:
        answer = plain_answer(principal, asked)
        return answer | {"text": left.pop(0)}

    return make


def test_only_so_many_turns_are_replayed(client: TestClient, world: World, thread: str) -> None:
    turns = world.settings.answer.max_history_turns
    world.answers.make = answers_in_order(*(f"answer {n}" for n in range(turns + 3)))
    for number in range(turns + 3):
        world.clock.advance(1)
        ask(client, f"What is subject number {number}?", thread)
    *_, (_, last) = world.answers.asked
    # Half of them go at once, so that the beginning of the prompts stays the same for a while.
    assert turns // 2 < len(last.history) / 2 < turns
    assert last.history[-1].content == f"answer {turns + 1}"


def test_a_turn_that_failed_is_not_replayed(client: TestClient, world: World, thread: str) -> None:
    world.answers.make = answers_in_order("x", "y")
    make = world.answers.make
    world.answers.make = lambda *a: make(*a) | {"answer_status": "error"}
    ask(client, "What is the first subject?", thread)
    ask(client, "What is the second subject?", thread)
    assert world.answers.asked[-1][1].history == ()


def test_a_conversation_of_another_is_not_found(
    client: TestClient, stranger: TestClient, world: World, thread: str
) -> None:
    refused = ask(stranger, "Why?", thread)
    assert refused.status_code == 404
    assert world.answers.asked == []
    assert stranger.get(f"{URL}/{thread}").status_code == 404
    assert stranger.delete(f"{URL}/{thread}").status_code == 404
    assert client.get(URL).json()["data"][0]["id"] == thread
    assert stranger.get(URL).json()["data"] == []


def test_deleting_ends_it(client: TestClient, thread: str) -> None:
    answered = ask(client, "How often?", thread).json()
    assert client.delete(f"{URL}/{thread}").status_code == 204
    assert client.delete(f"{URL}/{thread}").status_code == 404
    assert client.get(f"/v1/answers/{answered['id']}").status_code == 404
    assert ask(client, "And now?", thread).status_code == 404


def test_titles_are_bounded(client: TestClient) -> None:
    assert client.post(URL, json={"title": "  Pumps \n and valves "}).json()["title"] == (
        "Pumps and valves"
    )
    assert client.post(URL, json={"title": "x" * 201}).status_code == 422
    assert client.post(URL, json={"name": "x"}).status_code == 422
