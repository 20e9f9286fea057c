"""The OpenAPI document: committed, sound, and what the API really answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from query.app import create_app
from tests.api_world import World
from tests.contract.openapi.document import COMMAND, PAGE, describe_api, render

DOCUMENT = describe_api()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
IDS = [f"{method} {path}" for method, path, _ in OPERATIONS]


def test_the_committed_document_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render(), f"run: {COMMAND}"


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    found = set(references(DOCUMENT))
    assert len(found) > 20
    schemas = DOCUMENT["components"]["schemas"]
    assert {f"#/components/schemas/{name}" for name in schemas} == found
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


def test_operations_have_distinct_names() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=IDS)
def test_every_operation_tells_its_errors_and_its_keys(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    content = operation["responses"]["default"]["content"]
    if path.startswith(("/v1/chat/", "/v1/models")):
        expected = {"application/json": "OpenAiProblem"}
    else:
        expected = {"application/problem+json": "Problem"}
    assert content == {
        kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}
        for kind, name in expected.items()
    }
    assert "422" not in operation["responses"]
    if path == "/v1/about":
        assert "security" not in operation
    else:
        assert operation["security"] == [{"bearer": []}, {"header": []}, {"session": []}]
    assert operation["tags"]


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    headers = {"Authorization": f"Bearer {world.key()}"}
    app = create_app(world.services)
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as found:
        yield found


def schema_of(operation: dict[str, Any], status: int) -> dict[str, Any] | None:
    answer = operation["responses"].get(str(status)) or operation["responses"]["default"]
    for media_type in ("application/json", "application/problem+json"):
        if media_type in answer.get("content", {}):
            schema: dict[str, Any] = answer["content"][media_type]["schema"]
            return schema
    return None


def assert_described(method: str, path: str, answer: Any) -> None:
    """The answer's status is one that the document names, and its body has the schema."""
    operation = DOCUMENT["paths"][path][method.lower()]
    if answer.status_code < 400:
        assert str(answer.status_code) in operation["responses"]
    schema = schema_of(operation, answer.status_code)
    if schema is None:
        return
    whole = {**schema, "components": DOCUMENT["components"]}
    errors = [error.message for error in Draft202012Validator(whole).iter_errors(answer.json())]
    assert not errors, (method, path, errors)


def test_what_the_api_answers_is_what_the_document_says(client: TestClient, world: World) -> None:
    ready = world.ingest(texts=["The pumps are tested yearly."])
    waiting = world.announce("hr/waiting.pdf", b"%PDF-1.7 waiting")
    answered = client.post("/v1/answers", json={"question": "How often?"}).json()
    thread = client.post("/v1/conversations", json={}).json()["id"]
    talk = f"/v1/conversations/{thread}"
    chat = {"model": "rag", "messages": [{"role": "user", "content": "How often?"}]}
    one, job = f"/v1/documents/{ready.document_id}", f"/v1/jobs/{waiting.job_id}"
    page = "/v1/documents/{document_id}/pages/{page}"
    requests: list[tuple[str, str, str, dict[str, Any]]] = [
        ("POST", "/v1/answers", "/v1/answers", {"json": {"question": "How often?"}}),
        ("POST", "/v1/answers", "/v1/answers", {"json": {}}),
        ("GET", "/v1/answers/{answer_id}", f"/v1/answers/{answered['id']}", {}),
        ("GET", "/v1/answers/{answer_id}", "/v1/answers/ans_unknown", {}),
        ("GET", "/v1/answers/{answer_id}/events", f"/v1/answers/{answered['id']}/events", {}),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", {"json": chat}),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", {"json": {"model": "rag"}}),
        ("GET", "/v1/models", "/v1/models", {}),
        ("GET", "/v1/models/{model}", "/v1/models/rag", {}),
        ("GET", "/v1/models/{model}", "/v1/models/none", {}),
        ("POST", "/v1/conversations", "/v1/conversations", {"json": {"title": "Pumps"}}),
        ("GET", "/v1/conversations", "/v1/conversations", {}),
        (
            "POST",
            "/v1/answers",
            "/v1/answers",
            {"json": {"question": "How often?", "conversation_id": thread}},
        ),
        ("GET", "/v1/conversations/{conversation_id}", talk, {}),
        ("GET", "/v1/conversations/{conversation_id}/answers", f"{talk}/answers", {}),
        ("DELETE", "/v1/conversations/{conversation_id}", talk, {}),
        ("DELETE", "/v1/conversations/{conversation_id}", talk, {}),
        ("POST", "/v1/search", "/v1/search", {"json": {"query": "pumps tested"}}),
        ("POST", "/v1/documents", "/v1/documents?filename=n.pdf", {"content": b"%PDF-1.7"}),
        ("POST", "/v1/documents", "/v1/documents", {"content": b"%PDF-1.7"}),
        ("GET", "/v1/documents", "/v1/documents", {}),
        ("GET", "/v1/documents", "/v1/documents?limit=0", {}),
        ("GET", "/v1/documents/{document_id}", one, {}),
        ("GET", "/v1/documents/{document_id}/file", f"{one}/file", {}),
        (
            "GET",
            "/v1/documents/{document_id}/file",
            f"{one}/file",
            {"headers": {"range": "bytes=0-1"}},
        ),
        (
            "GET",
            "/v1/documents/{document_id}/file",
            f"{one}/file",
            {"headers": {"range": "bytes=9999-"}},
        ),
        ("GET", page, f"{one}/pages/1", {}),
        ("GET", page, f"{one}/pages/2", {}),
        ("GET", f"{page}/image", f"{one}/pages/1/image", {}),
        ("GET", f"{page}/rects", f"{one}/pages/1/rects?start=0&end=9", {}),
        ("GET", "/v1/jobs", "/v1/jobs", {}),
        ("GET", "/v1/jobs/{job_id}", job, {}),
        ("POST", "/v1/jobs/{job_id}/cancel", f"{job}/cancel", {}),
        ("POST", "/v1/jobs/{job_id}/cancel", f"{job}/cancel", {}),
        ("POST", "/v1/jobs/{job_id}/retry", f"{job}/retry", {}),
        ("GET", "/v1/collections", "/v1/collections", {}),
        ("GET", "/v1/ops/ingest", "/v1/ops/ingest", {}),
        (
            "POST",
            "/v1/internal/object-events",
            "/v1/internal/object-events",
            {"json": {"Records": []}},
        ),
        ("GET", "/v1/about", "/v1/about", {}),
        ("GET", "/v1/me", "/v1/me", {}),
        ("DELETE", "/v1/documents/{document_id}", one, {}),
        ("DELETE", "/v1/documents/{document_id}", one, {}),
        ("POST", "/v1/logout", "/v1/logout", {}),
    ]
    for method, path, address, arguments in requests:
        assert_described(method, path, client.request(method, address, **arguments))
    covered = {(method, path) for method, path, _, _ in requests}
    assert covered == {(method, path) for method, path, _ in OPERATIONS}


def test_the_document_is_served_to_callers_with_a_key(client: TestClient) -> None:
    served = client.get("/v1/openapi.json").json()
    served["info"]["version"] = DOCUMENT["info"]["version"]
    assert served == json.loads(json.dumps(DOCUMENT))
    assert client.get("/v1/openapi.json", headers={"Authorization": ""}).status_code == 401
