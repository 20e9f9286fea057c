"""`Idempotency-Key`: the same caller and key get the same answer."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from core.domain.access import Scope
from core.ids import repeatable_answer_id
from tests.api_world import World
from tests.fakes.answering import plain_answer
from tests.unit.query.api.test_answers import read_events

OpenClient = Callable[[str | None], TestClient]
QUESTION = "How often are the pumps tested?"
URL = "/v1/answers"


def ask_again(client: TestClient, question: str = QUESTION, key: str = "k-1", **more: Any) -> Any:
    headers = {"Idempotency-Key": key}
    return client.post(URL, json={"question": question, **more}, headers=headers)


def test_the_same_key_gives_the_stored_answer(client: TestClient, world: World) -> None:
    first, again = ask_again(client), ask_again(client)
    assert again.json() == first.json()
    assert len(world.answers.asked) == 1
    assert ask_again(client, key="k-2").json()["id"] != first.json()["id"]
    assert len(world.answers.asked) == 2


def test_the_same_key_replays_the_events(client: TestClient, world: World) -> None:
    first = ask_again(client, stream=True)
    assert ask_again(client, stream=True).text == first.text
    assert ask_again(client).json() == read_events(first.text)[-1]["answer"]
    assert len(world.answers.asked) == 1


def test_the_same_key_for_another_question_is_a_conflict(client: TestClient) -> None:
    ask_again(client)
    conflict = ask_again(client, "What else?")
    assert conflict.status_code == 409
    assert conflict.json()["code"] == "conflict"


def test_keys_of_two_callers_do_not_meet(
    client: TestClient, stranger: TestClient, open_client: OpenClient, world: World
) -> None:
    colleague = open_client(world.key(Scope.SEARCH))
    answers = {ask_again(caller).json()["id"] for caller in (client, stranger, colleague)}
    assert len(answers) == 3


def test_a_failed_answer_does_not_stand_in_the_way(client: TestClient, world: World) -> None:
    def failing(principal: Any, asked: Any) -> dict[str, Any]:
        return plain_answer(principal, asked) | {"answer_status": "error"}

    made = world.answers.make
    world.answers.make = failing
    failed = ask_again(client).json()
    world.answers.make = made
    good = ask_again(client).json()
    assert failed["answer_status"] == "error"
    assert good["answer_status"] == "not_in_documents"
    assert good["id"] != failed["id"]
    assert ask_again(client).json() == good


def test_a_request_that_is_still_being_answered_is_a_conflict(
    client: TestClient, world: World
) -> None:
    principal = world.catalog.access.authenticate(client.headers["authorization"].split()[1])
    answer_id = repeatable_answer_id(principal.tenant_id, principal.subject, "k-1")
    assert isinstance(client.app, FastAPI)
    client.app.state.running_answers.add(answer_id)
    assert ask_again(client).status_code == 409
    client.app.state.running_answers.discard(answer_id)
    assert ask_again(client).status_code == 200
    assert client.app.state.running_answers == set()


def test_idempotency_keys_have_a_length(client: TestClient) -> None:
    assert ask_again(client, key="x" * 255).status_code == 200
    assert ask_again(client, key="x" * 256).status_code == 422
    assert ask_again(client, key="").status_code == 422
