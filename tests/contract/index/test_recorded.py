"""Requests that an unmodified client sent: still what it sends, and answered as it expects."""

import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient

from tests.contract.index.answers import difference, plain
from tests.contract.index.conftest import Target
from tests.contract.index.record import FOLDER, record, render
from tests.contract.index.steps import NAME, NEXT, STEPS

Recorded = dict[str, Any]
_OF_COLLECTION = ("points_count", "config.params.vectors", "config.params.sparse_vectors",
                  "config.metadata")  # fmt: skip


def committed() -> list[Recorded]:
    """All recorded requests in the order of the steps."""
    requests = [r for path in FOLDER.glob("*.json") for r in json.loads(path.read_text("utf-8"))]
    return sorted(requests, key=lambda request: request["position"])


def send(http: httpx.Client, request: Recorded, body: Any = None) -> httpx.Response:
    body = request["body"] if body is None else body
    return http.request(
        request["method"],
        request["path"],
        params=request["parameters"],
        content=None if body is None else json.dumps(body),
        headers={"content-type": "application/json"},
    )


def reset(http: httpx.Client) -> None:
    for name in (NAME, NEXT):
        assert http.delete(f"/collections/{name}").status_code == 200


def expected(step_result: Any) -> Any:
    """What local mode returned, in the shape of a wire answer."""
    value = plain(step_result)
    if isinstance(step_result, tuple):
        points, following = value
        return {"points": points} | ({} if following is None else {"next_page_offset": following})
    return value


def comparable(request: Recorded, result: Any) -> Any:
    """Drop from an answer what depends on the server's life rather than on the request."""
    path = request["path"]
    if path.endswith("/exists"):
        return result["exists"] if isinstance(result, dict) else result
    if isinstance(result, dict) and "aliases" in result:
        return sorted(result["aliases"], key=lambda item: str(item["alias_name"]))
    if isinstance(result, dict) and "collections" in result:
        return sorted(c["name"] for c in result["collections"] if c["name"] in (NAME, NEXT))
    if isinstance(result, dict) and "config" in result:
        return {place: _dig(result, place) for place in _OF_COLLECTION}
    if isinstance(result, dict) and "status" in result:
        # Local mode says `completed` to everything; a server says `acknowledged` without wait.
        assert result["status"] in ("completed", "acknowledged")
        return "updated"
    if isinstance(result, dict) and "hits" in result:
        return sorted((str(hit["value"]), hit["count"]) for hit in result["hits"])
    return result


def _dig(content: Any, place: str) -> Any:
    for key in place.split("."):
        content = content.get(key) if isinstance(content, dict) else None
    return content


def test_the_client_still_sends_what_was_recorded() -> None:
    now = {f"{area}.json": render(requests) for area, requests in record().items()}
    then = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}
    assert now == then, "run: python -m tests.contract.index.record"


def test_every_recorded_answer_is_what_local_mode_returns(target: Target) -> None:
    local = QdrantClient(":memory:")
    problems = []
    with target.http() as http:
        reset(http)
        for step, request in zip(STEPS, committed(), strict=True):
            answer = send(http, request)
            with warnings.catch_warnings():
                # Local mode warns that payload indexes and search parameters do nothing in it.
                warnings.simplefilter("ignore", UserWarning)
                local_result = step.call(local)
            if answer.status_code != 200:
                problems.append(f"{step.name}: {answer.status_code} {answer.text}")
                continue
            content = answer.json()
            assert content["status"] == "ok"
            ours = comparable(request, plain(content["result"]))
            theirs = comparable(request, expected(local_result))
            if found := difference(ours, theirs):
                problems.append(f"{step.name}: {found}")
        reset(http)
    local.close()
    assert not problems, "\n".join(problems)


def places(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every JSON object in a body whose keys the server must know."""
    found: list[tuple[Any, ...]] = []
    if isinstance(body, dict):
        found.append(path)
        for key, value in body.items():
            if key not in ("payload", "payloads", "metadata"):  # the client's own JSON
                found += places(value, (*path, key))
    elif isinstance(body, list):
        for position, item in enumerate(body):
            found += places(item, (*path, position))
    return found


def with_surprise(body: Any, path: tuple[Any, ...]) -> Any:
    changed = json.loads(json.dumps(body))
    inside = changed
    for key in path:
        inside = inside[key]
    inside["surprise"] = 1
    return changed


@pytest.fixture
def settled(ours: Target) -> Iterator[httpx.Client]:
    """Our server after the steps that create and write, so that only the surprise is wrong."""
    with ours.http() as http:
        reset(http)
        for request in committed():
            if request["position"] >= 30:
                break
            assert send(http, request).status_code == 200
        yield http
        reset(http)


def test_an_unknown_key_anywhere_is_refused(settled: httpx.Client) -> None:
    tried = 0
    before = settled.post("/collections/chunks_v1/points/count", content="{}").json()["result"]
    for request in committed():
        if request["body"] is None:
            continue
        for path in places(request["body"]):
            answer = send(settled, request, with_surprise(request["body"], path))
            assert answer.status_code == 400, (request["step"], path, answer.text)
            assert answer.json()["status"]["error"], request["step"]
            tried += 1
    after = settled.post("/collections/chunks_v1/points/count", content="{}").json()["result"]
    assert after == before
    assert tried > 200


JUNK: list[Any] = [
    None, -1, 0, 2**32, 2**64, 1.5, 1e39, "", "x", "a[", "\x00", "9999-12-31T23:59:59Z", True,
    [], {}, [[]], [None], ["x"], [1], [1.0] * 4, {"a": 1}, {"indices": [1], "values": [1.0]},
]  # fmt: skip


def leaves(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a body, inner ones included."""
    inside = (
        body.items()
        if isinstance(body, dict)
        else enumerate(body)
        if isinstance(body, list)
        else ()
    )
    return [path, *(place for key, value in inside for place in leaves(value, (*path, key)))]


def with_junk(body: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    changed = json.loads(json.dumps(body))
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    return changed


def test_junk_is_the_clients_mistake_and_never_the_servers(settled: httpx.Client) -> None:
    rng = random.Random(11)
    requests = [
        request
        for request in committed()
        if request["body"] is not None and "/points" in request["path"]
    ]
    statuses = set()
    for _ in range(400):
        request = rng.choice(requests)
        place = rng.choice(leaves(request["body"]))
        answer = send(settled, request, with_junk(request["body"], place, rng.choice(JUNK)))
        statuses.add(answer.status_code)
        assert answer.status_code in (200, 400, 404), (request["step"], place, answer.text)
    assert statuses >= {200, 400}
    for request in committed()[21:23]:  # what the other tests of this file expect to find
        assert send(settled, request).status_code == 200


def test_an_unknown_query_parameter_is_refused(settled: httpx.Client) -> None:
    for request in committed():
        asked = {**request, "parameters": {**request["parameters"], "surprise": "1"}}
        answer = send(settled, asked)
        assert answer.status_code == 400, (request["step"], answer.text)
        assert "surprise" in answer.json()["status"]["error"]
