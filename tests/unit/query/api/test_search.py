"""Passages without an answer."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from core.domain.access import Scope
from query.api.schemas.answers import SearchResult
from query.app import create_app
from tests.api_world import World

OpenClient = Callable[[str | None], TestClient]
PUMPS = "The pumps are tested yearly.\nA log is kept."
VALVES = "The valves are painted red."


def search(client: TestClient, query: str = "pumps tested yearly", **more: Any) -> Any:
    answer = client.post("/v1/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_passages_come_with_their_place(client: TestClient, world: World) -> None:
    accepted = world.ingest("hr/handbook.pdf", [VALVES, PUMPS])
    found = search(client)
    best = found["data"][0]
    assert best["text"] == PUMPS
    assert best["document_id"] == accepted.document_id
    assert (best["title"], best["collection"]) == ("handbook", "hr")
    assert best["pages"] == [2]
    assert best["heading_path"] == ["Chapter"]
    (location,) = best["locations"]
    page = client.get(f"/v1/documents/{accepted.document_id}/pages/2").json()
    assert page["text"][location["start"] : location["end"]] == best["text"]
    assert location["rects"] == [line["rect"] for line in page["lines"]]
    assert best["view_url"] == (
        f"/view/{accepted.document_id}?v={best['version']}&page={location['page']}"
    )
    assert set(found["timings"]) == {"embed_ms", "search_ms", "rerank_ms", "total_ms"}
    SearchResult.model_validate(found)


def test_limit_and_narrowing(client: TestClient, world: World) -> None:
    first = world.ingest("hr/one.pdf", [PUMPS, PUMPS + " Twice."])
    second = world.ingest("plant/two.pdf", [PUMPS + " Again."])
    assert len(search(client)["data"]) == 3
    assert len(search(client, limit=1)["data"]) == 1
    in_plant = search(client, collections=["plant"])["data"]
    assert {passage["document_id"] for passage in in_plant} == {second.document_id}
    of_first = search(client, document_ids=[first.document_id])["data"]
    assert len(of_first) == 2
    for limit in (0, 51, "x"):
        answer = client.post("/v1/search", json={"query": "pumps", "limit": limit})
        assert answer.status_code == 422


def test_scores_are_for_those_who_may_explain(
    client: TestClient, open_client: OpenClient, world: World
) -> None:
    world.ingest()
    (explained,) = search(client)["data"]
    assert explained["scores"]["fused"] > 0
    assert explained["scores"]["dense_rank"] == 1
    (plain,) = search(open_client(world.key(Scope.SEARCH)))["data"]
    assert "scores" not in plain


def test_what_is_not_active_is_not_found(client: TestClient, world: World) -> None:
    old = world.ingest("hr/handbook.pdf", [PUMPS])
    world.ingest("hr/handbook.pdf", ["Everything is new: pumps are tested monthly."])
    found = search(client)["data"]
    assert [passage["text"] for passage in found] == [
        "Everything is new: pumps are tested monthly."
    ]
    client.delete(f"/v1/documents/{old.document_id}")
    assert search(client)["data"] == []


def test_nothing_is_found_in_nothing(client: TestClient) -> None:
    assert search(client)["data"] == []


@pytest.mark.parametrize(
    ("server", "code"),
    [("index", "index_unavailable"), ("embedder", "models_unavailable")],
)
def test_a_server_that_is_down_is_named(
    client: TestClient, world: World, server: str, code: str
) -> None:
    world.ingest()
    getattr(world, server).is_down = True
    answer = client.post("/v1/search", json={"query": "pumps"})
    assert answer.status_code == 503
    assert answer.json()["code"] == code


def test_view_urls_are_absolute_with_a_public_url(make_world: Callable[..., World]) -> None:
    world = make_world(api={"public_url": "https://docs.example.org/"})
    world.ingest()
    headers = {"Authorization": f"Bearer {world.key()}"}
    app = create_app(world.services)
    with TestClient(app, base_url="https://docs.example.org", headers=headers) as client:
        (passage,) = search(client)["data"]
    assert passage["view_url"].startswith("https://docs.example.org/view/doc_")
