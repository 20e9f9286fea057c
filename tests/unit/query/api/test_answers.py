"""Asking, with events and without; stored answers; idempotency; too many at once."""

import json
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from core.domain.access import Scope
from core.errors import IndexUnavailable, InvalidInput, Overloaded
from tests.api_world import World

OpenClient = Callable[[str | None], TestClient]
QUESTION = "How often are the pumps tested?"
URL = "/v1/answers"


def read_events(text: str) -> list[dict[str, Any]]:
    """The data of each event, after checking that name and id agree with it."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        if block.startswith(":"):
            continue
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        data = json.loads(lines["data"])
        assert lines["event"] == data["type"]
        assert int(lines["id"]) == data["seq"]
        found.append(data)
    return found


def test_one_object_without_events(client: TestClient, world: World) -> None:
    answer = client.post(URL, json={"question": f"  {QUESTION}\n"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert body["object"] == "pincite.answer"
    assert body["question"] == QUESTION
    assert client.get(f"{URL}/{body['id']}").json() == body
    ((_, asked),) = world.answers.asked
    assert asked.trace_id == answer.headers["x-request-id"]


@pytest.mark.parametrize("way", ["body", "header"])
def test_events_as_they_happen(client: TestClient, way: str) -> None:
    body: dict[str, Any] = {"question": QUESTION} | ({"stream": True} if way == "body" else {})
    headers = {"accept": "text/event-stream"} if way == "header" else {}
    answer = client.post(URL, json=body, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    events = read_events(answer.text)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "answer.created"
    assert events[-1]["type"] == "answer.completed"
    text = "".join(event["delta"] for event in events if event["type"] == "text.delta")
    assert text == events[-1]["answer"]["text"]
    stored = client.get(f"{URL}/{events[0]['id']}").json()
    assert stored == events[-1]["answer"]


def test_stored_events_are_replayed_from_anywhere(client: TestClient) -> None:
    sent = client.post(URL, json={"question": QUESTION, "stream": True})
    events = read_events(sent.text)
    url = f"{URL}/{events[0]['id']}/events"
    replay = client.get(url)
    assert replay.text == sent.text
    assert replay.headers["content-type"].startswith("text/event-stream")
    after = client.get(url, headers={"Last-Event-ID": "2"})
    assert read_events(after.text) == events[2:]
    ended = client.get(url, headers={"Last-Event-ID": str(len(events))})
    assert (ended.status_code, ended.text) == (204, "")
    for wrong in ("x", "-1", "99999999999999999999"):
        assert client.get(url, headers={"Last-Event-ID": wrong}).status_code == 422


def test_narrowing_is_handed_on(client: TestClient, world: World) -> None:
    document_id = "doc_" + "1" * 32
    client.post(
        URL,
        json={"question": QUESTION, "collections": ["hr"], "document_ids": [document_id]},
    )
    ((_, asked),) = world.answers.asked
    assert (asked.collections, asked.document_ids) == (("hr",), (document_id,))


def test_mode_and_length_are_handed_on(client: TestClient, world: World) -> None:
    body = {"question": QUESTION, "mode": "generative", "max_tokens": 50}
    assert client.post(URL, json=body).status_code == 200
    assert client.post(URL, json={"question": QUESTION}).status_code == 200
    (_, first), (_, second) = world.answers.asked
    assert (first.mode, first.max_tokens) == ("generative", 50)
    assert (second.mode, second.max_tokens) == (None, None)
    assert first.is_cancelled() is True  # its client has its answer and is gone


@pytest.mark.parametrize(
    "body",
    [
        b'{"question": "a", "mode": "poetic"}',
        b'{"question": "a", "max_tokens": 0}',
        b'{"question": "a", "max_tokens": 1e9}',
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"question": ""}',
        b'{"question": " \\n "}',
        b'{"question": 1}',
        b'{"question": "a", "collection": "hr"}',
        b'{"question": "a", "document_ids": ["x"]}',
        b'{"question": "a", "document_ids": "doc_1"}',
        b'{"question": "a", "collections": [""]}',
        b'{"question": "\\ud800"}',
        b'{"question": "' + b"\xff" + b'"}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("url", ["/v1/answers", "/v1/search"])
def test_malformed_requests_are_refused(
    client: TestClient, world: World, url: str, body: bytes
) -> None:
    if url == "/v1/search":
        body = body.replace(b"question", b"query")
    answer = client.post(url, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert world.answers.asked == []


def test_a_body_must_be_called_json(client: TestClient) -> None:
    content = json.dumps({"question": QUESTION})
    for content_type in ("text/plain", ""):
        answer = client.post(URL, content=content, headers={"content-type": content_type})
        assert answer.status_code == 422


def test_long_questions_are_refused(client: TestClient, world: World) -> None:
    limit = world.settings.answer.max_question_chars
    assert client.post(URL, json={"question": "x" * limit}).status_code == 200
    for url, name in ((URL, "question"), ("/v1/search", "query")):
        answer = client.post(url, json={name: "x" * (limit + 1)})
        assert answer.status_code == 400
        assert str(limit) in answer.json()["detail"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_before_the_first_event_is_an_http_error(
    client: TestClient, world: World, stream: bool
) -> None:
    world.answers.error = InvalidInput("the question is odd", hint="ask another")
    answer = client.post(URL, json={"question": QUESTION, "stream": stream})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "the question is odd"
    assert answer.json()["hint"] == "ask another"


def test_an_error_on_the_way_is_the_last_event(client: TestClient, world: World) -> None:
    world.answers.late_error = IndexUnavailable("the index does not answer", hint="wait")
    events = read_events(client.post(URL, json={"question": QUESTION, "stream": True}).text)
    assert events[0]["type"] == "answer.created"
    assert events[1:] == [
        {
            "type": "error",
            "seq": 2,
            "code": "index_unavailable",
            "message": "the index does not answer",
            "hint": "wait",
            "retryable": True,
        }
    ]
    plain = client.post(URL, json={"question": QUESTION})
    assert plain.status_code == 503
    assert plain.json()["code"] == "index_unavailable"


@pytest.mark.parametrize("stream", [False, True])
def test_an_unforeseen_error_tells_nothing_of_itself(
    client: TestClient,
    world: World,
    stream: bool,
    log_lines: list[MutableMapping[str, Any]],
) -> None:
    world.answers.late_error = ZeroDivisionError("the secret is 42")
    answer = client.post(URL, json={"question": QUESTION, "stream": stream})
    assert "secret" not in answer.text
    assert "ZeroDivisionError" not in answer.text
    if stream:
        assert read_events(answer.text)[-1]["code"] == "internal_error"
    else:
        assert answer.status_code == 500
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert [line["log_level"] for line in log_lines if line["event"] == "http.unexpected"] == [
        "error"
    ]


def test_an_answer_belongs_to_who_asked(
    client: TestClient, open_client: OpenClient, world: World
) -> None:
    asker = open_client(world.key(Scope.SEARCH))
    colleague = open_client(world.key(Scope.SEARCH))
    answer_id = asker.post(URL, json={"question": QUESTION}).json()["id"]
    for path in (f"{URL}/{answer_id}", f"{URL}/{answer_id}/events"):
        assert asker.get(path).status_code == 200
        assert colleague.get(path).status_code == 404
        assert client.get(path).status_code == 200  # scope admin


@pytest.mark.parametrize("stream", [False, True])
def test_more_questions_than_slots_are_told_to_come_back(
    client: TestClient, world: World, stream: bool
) -> None:
    assert isinstance(client.app, FastAPI)
    slots = client.app.state.answer_slots
    limit = world.settings.api.max_answers
    taken = [slots.take() for _ in range(limit)]
    for slot in taken:
        slot.__enter__()
    refused = client.post(URL, json={"question": QUESTION, "stream": stream})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["code"] == Overloaded.code
    for slot in taken:
        slot.__exit__(None, None, None)
    assert client.post(URL, json={"question": QUESTION, "stream": stream}).status_code == 200
    assert slots.num_taken == 0


def test_questions_are_not_logged(
    client: TestClient, log_lines: list[MutableMapping[str, Any]]
) -> None:
    canary = "Is zanzibar-canary-4711 mentioned?"
    client.post(URL, json={"question": canary})
    client.post(URL, json={"question": canary, "stream": True, "odd": canary})
    client.get("/v1/documents", params={"collection": canary})
    assert len(log_lines) >= 3
    assert "canary" not in repr(log_lines)
