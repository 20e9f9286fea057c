"""The API in front of the real answering service, over fakes of index and models."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from query.answers.answering import AnswerDeps, Answering
from query.api.schemas.answers import Answer
from query.app import create_app
from tests.api_world import World

QUESTION = "How often are the pumps tested?"
URL = "/v1/answers"


@pytest.fixture
def real(world: World) -> Iterator[TestClient]:
    deps = AnswerDeps(
        catalog=world.catalog,
        artifacts=world.artifacts,
        index=world.index,
        embedder=world.embedder,
        settings=world.settings,
        clock=world.clock,
    )
    app = create_app(replace(world.services, answer=Answering(deps)))
    headers = {"Authorization": f"Bearer {world.key()}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def test_its_error_event_becomes_a_problem(real: TestClient, world: World) -> None:
    world.ingest()
    world.index.is_down = True
    plain = real.post(URL, json={"question": QUESTION})
    assert plain.status_code == 503
    assert plain.json()["code"] == "index_unavailable"
    streamed = real.post(URL, json={"question": QUESTION, "stream": True})
    assert streamed.status_code == 200
    assert streamed.text.rstrip().split("\n\n")[-1].startswith("event: error\n")


def test_the_answer_has_exactly_the_documented_shape(real: TestClient, world: World) -> None:
    nothing = checked(real, real.post(URL, json={"question": QUESTION}).json())
    assert nothing["answer_status"] == "not_in_documents"
    accepted = world.ingest(
        texts=["The pumps are tested yearly. A log is kept.", "Valves are painted red."]
    )
    answer = checked(real, real.post(URL, json={"question": QUESTION}).json())
    assert answer["answer_status"] == "answered"
    for citation in answer["citations"]:
        (quoted,) = citation["sources"]
        (place,) = quoted["locations"]
        page = real.get(f"/v1/documents/{accepted.document_id}/pages/{place['page']}").json()
        assert page["text"][place["start"] : place["end"]] == quoted["quote"]


def checked(client: TestClient, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, once it is known to be what openapi.json says and what is stored."""
    parsed = Answer.model_validate(answer)
    assert parsed.model_dump(mode="json", exclude_unset=True) == answer
    assert client.get(f"{URL}/{answer['id']}").json() == answer
    return answer


def test_deleting_the_document_takes_the_quote_out_of_the_answer(
    real: TestClient, world: World
) -> None:
    accepted = world.ingest(texts=["The pumps are tested yearly. A log is kept."])
    answer = real.post(URL, json={"question": QUESTION}).json()
    assert "yearly" in answer["text"]
    assert real.delete(f"/v1/documents/{accepted.document_id}").status_code == 204
    later = real.get(f"{URL}/{answer['id']}")
    events = real.get(f"{URL}/{answer['id']}/events")
    assert "yearly" not in later.text
    assert "yearly" not in events.text
    (quoted,) = later.json()["citations"][0]["sources"]
    assert quoted["quote"] is None
    assert quoted["deleted"] is True
