"""Who may do what: tests made from the list of routes, so that a new route is tested too."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from core.domain.access import Scope
from query.http.auth import CSRF_HEADER, SESSION_COOKIE
from tests.api_world import World
from tests.unit.query.api.routes import (
    PUBLIC,
    Route,
    all_routes,
    closed_routes,
    credentials,
    send,
)

OpenClient = Callable[[str | None], TestClient]
WAYS = ("bearer", "header", "cookie")
UNKNOWN = {
    "document_id": "doc_" + "0" * 32,
    "job_id": "job_" + "0" * 32,
    "answer_id": "ans_" + "0" * 32,
    "conversation_id": "conv_" + "0" * 32,
    "model": "rag/nowhere",
    "page": "1",
}
NEEDS = {
    Scope.INGEST: {
        "POST /v1/documents",
        "DELETE /v1/documents/{document_id}",
        "POST /v1/jobs/{job_id}/retry",
        "POST /v1/jobs/{job_id}/cancel",
        "POST /v1/internal/object-events",
    },
    Scope.OPS: {"GET /v1/ops/ingest"},
    None: {"POST /v1/logout", "GET /v1/me", "GET /v1/openapi.json"},  # any valid key
}


def app_of(client: TestClient) -> FastAPI:
    assert isinstance(client.app, FastAPI)
    return client.app


@pytest.fixture
def ids(world: World, client: TestClient) -> dict[str, str]:
    """Things of the tenant `default`, all of which its own keys find."""
    accepted = world.ingest()
    begun = client.post("/v1/conversations", json={}).json()
    answered = client.post(
        "/v1/answers",
        json={"question": "How often are the pumps tested?", "conversation_id": begun["id"]},
    )
    return {
        "document_id": accepted.document_id,
        "job_id": accepted.job_id,
        "answer_id": answered.json()["id"],
        "conversation_id": begun["id"],
        "model": "rag/hr",
        "page": "1",
    }


def test_the_list_of_routes_is_whole(client: TestClient) -> None:
    app = app_of(client)
    walked = {str(route) for route in all_routes(app)}
    described = {
        f"{method.upper()} {path}"
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    assert described <= walked
    assert {route.split()[1] for route in walked} >= PUBLIC


def test_every_closed_route_refuses_without_a_key(nobody: TestClient) -> None:
    app = app_of(nobody)
    answers = {str(route): send(nobody, route, UNKNOWN).status_code for route in closed_routes(app)}
    assert answers == dict.fromkeys(answers, 401)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secret", ["pck_wrong", " ", "Bearer x", "é"])
def test_every_closed_route_refuses_a_wrong_key(nobody: TestClient, way: str, secret: str) -> None:
    nobody.headers.update({k.encode(): v.encode() for k, v in credentials(secret)[way].items()})
    for route in closed_routes(app_of(nobody)):
        answer = send(nobody, route, UNKNOWN)
        assert answer.status_code == 401, route
        if route.method != "HEAD":
            assert _code_of(answer, route) == "not_authenticated"


def _code_of(answer: Any, route: Route) -> str:
    """The code of a refusal, in the shape that the route's clients read."""
    if route.path.startswith(("/v1/chat/", "/v1/models")):
        assert answer.headers["content-type"] == "application/json"
        return str(answer.json()["error"]["code"])
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["code"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reason", ["revoked", "expired", "used"])
def test_a_key_that_was_good_once_is_refused_everywhere(
    world: World, nobody: TestClient, way: str, reason: str
) -> None:
    access = world.catalog.access
    created = access.create_key(
        world.tenant_ids["documents"],
        name="test",
        scopes=frozenset(Scope),
        expires_at=world.clock.now() + timedelta(hours=1),
        is_single_use=reason == "used",
    )
    assert created.secret is not None
    nobody.headers.update(credentials(created.secret)[way])
    assert nobody.get("/v1/me").status_code == 200
    if reason == "revoked":
        access.revoke_key(world.owner(), created.key_id)
    elif reason == "expired":
        world.clock.advance(3600)
    for route in closed_routes(app_of(nobody)):
        assert send(nobody, route, UNKNOWN).status_code == 401, route


@pytest.mark.parametrize("way", WAYS)
def test_another_tenant_finds_nothing_under_our_ids(
    world: World, nobody: TestClient, ids: dict[str, str], way: str
) -> None:
    nobody.headers.update(credentials(world.key(tenant="other"))[way])
    routes = [route for route in closed_routes(app_of(nobody)) if route.parameters]
    assert len(routes) >= 12
    answers = {str(route): send(nobody, route, ids).status_code for route in routes}
    assert answers == dict.fromkeys(answers, 404)


def test_our_own_key_finds_what_the_stranger_does_not(
    client: TestClient, ids: dict[str, str]
) -> None:
    routes = [route for route in closed_routes(app_of(client)) if route.parameters]
    deleting = [route for route in routes if route.method == "DELETE"]
    for route in [route for route in routes if route not in deleting] + deleting:
        # 409: a finished job can neither be retried nor cancelled, and is known all the same.
        assert send(client, route, ids).status_code in {200, 204, 409}, route


def test_ids_of_another_tenant_in_a_body_find_nothing(
    world: World, stranger: TestClient, ids: dict[str, str]
) -> None:
    asked = {"query": "pumps tested yearly", "document_ids": [ids["document_id"]]}
    assert stranger.post("/v1/search", json=asked).json()["data"] == []
    assert stranger.post("/v1/search", json={"query": "pumps tested yearly"}).json()["data"] == []


def test_listings_show_only_the_tenants_own(
    stranger: TestClient, client: TestClient, ids: dict[str, str]
) -> None:
    for path in ("/v1/documents", "/v1/jobs"):
        assert stranger.get(path).json() == {"data": [], "next_cursor": None}
        assert len(client.get(path).json()["data"]) == 1
    assert stranger.get("/v1/collections").json()["data"] == []


def scope_of(route: Route) -> Scope | None:
    for scope, routes in NEEDS.items():
        if str(route) in routes:
            return scope
    return Scope.SEARCH


@pytest.mark.parametrize("held", [scope for scope in Scope if scope is not Scope.ADMIN])
def test_a_key_does_what_its_scope_allows_and_nothing_else(
    world: World, open_client: OpenClient, held: Scope
) -> None:
    client = open_client(world.key(held))
    for route in closed_routes(app_of(client)):
        if str(route) == "POST /v1/logout":
            continue
        status = send(client, route, UNKNOWN).status_code
        may = scope_of(route) in {held, None}
        assert (status != 403) is may, (route, status)


def test_a_key_of_one_collection_sees_only_that(world: World, open_client: OpenClient) -> None:
    allowed = world.ingest("hr/handbook.pdf")
    hidden = world.ingest("plant/manual.pdf", ["The pumps are tested weekly."])
    client = open_client(world.key(collections=["hr"]))
    assert client.get(f"/v1/documents/{allowed.document_id}").status_code == 200
    ids = UNKNOWN | {"document_id": hidden.document_id, "job_id": hidden.job_id}
    for route in closed_routes(app_of(client)):
        if set(route.parameters) & {"document_id", "job_id"}:
            assert send(client, route, ids).status_code == 404, route
    listed = client.get("/v1/documents").json()["data"]
    assert [found["document_id"] for found in listed] == [allowed.document_id]
    assert client.get("/v1/documents", params={"collection": "plant"}).json()["data"] == []
    names = [found["name"] for found in client.get("/v1/collections").json()["data"]]
    assert names == ["hr"]
    found = client.post("/v1/search", json={"query": "pumps tested"}).json()["data"]
    assert {passage["collection"] for passage in found} == {"hr"}
    refused = client.post("/v1/documents?collection=plant&filename=x.pdf", content=b"%PDF-")
    assert refused.status_code == 403
    assert "plant/x.pdf" not in world.store.keys("documents")


def test_the_cookie_changes_nothing_without_the_csrf_header(
    world: World, nobody: TestClient
) -> None:
    nobody.headers["Cookie"] = f"{SESSION_COOKIE}={world.key()}"
    for route in closed_routes(app_of(nobody)):
        status = send(nobody, route, UNKNOWN).status_code
        assert (status == 403) is (route.method not in {"GET", "HEAD"}), (route, status)
    nobody.headers[CSRF_HEADER] = "1"
    assert nobody.get("/v1/me").status_code == 200


def test_a_wrong_header_is_not_saved_by_a_good_cookie(world: World, nobody: TestClient) -> None:
    nobody.headers["Cookie"] = f"{SESSION_COOKIE}={world.key()}"
    for headers in ({"Authorization": "Bearer wrong"}, {"x-api-key": "wrong"}):
        assert nobody.get("/v1/me", headers=headers).status_code == 401


def test_each_changing_route_writes_one_audit_row(
    world: World, client: TestClient, ids: dict[str, str]
) -> None:
    waiting = world.announce("hr/second.pdf", b"%PDF-1.7 second")
    changing: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/documents?collection=hr&filename=n.pdf", {"content": b"%PDF-1.7 n"}),
        ("POST", "/v1/answers", {"json": {"question": "When?"}}),
        ("POST", f"/v1/jobs/{waiting.job_id}/cancel", {}),
        ("POST", f"/v1/jobs/{waiting.job_id}/retry", {}),
        ("POST", "/v1/internal/object-events", {"json": {"Records": []}}),
        ("DELETE", f"/v1/documents/{ids['document_id']}", {}),
    ]
    for method, path, arguments in changing:
        before = audit_rows(world)
        answer = client.request(method, path, headers={"x-request-id": "audited"}, **arguments)
        assert answer.is_success, answer.text
        after = audit_rows(world)
        assert len(after) == len(before) + 1, path
        assert after[-1]["request_id"] == "audited"
        assert after[-1]["subject"].startswith("key:")
    before = audit_rows(world)
    client.get("/v1/documents")
    client.post("/v1/search", json={"query": "pumps"})
    assert audit_rows(world) == before


def audit_rows(world: World) -> list[dict[str, Any]]:
    from sqlalchemy import select

    from core.adapters.catalog.tables import audit

    with world.catalog._db.reading() as connection:
        return [dict(row) for row in connection.execute(select(audit)).mappings()]
