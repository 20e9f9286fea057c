"""Probes, metrics, the ingest queue, and hints from buckets."""

import re
from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from core.domain.access import Scope
from core.domain.documents import Queue
from core.domain.operations import Heartbeat
from query.app import create_app
from tests.api_world import World

OpenClient = Callable[[str | None], TestClient]
_SAMPLE = re.compile(r"^(\w+)(?:{(.*)})? ([0-9.e+-]+)$", re.MULTILINE)


def samples(text: str) -> dict[str, float]:
    return {f"{name}{{{labels}}}": float(value) for name, labels, value in _SAMPLE.findall(text)}


def test_the_probes_need_no_key(nobody: TestClient) -> None:
    assert nobody.get("/livez").json() == {"status": "ok"}
    assert nobody.get("/readyz").json() == {"status": "ok", "problems": {}}
    assert nobody.head("/livez").status_code == nobody.head("/readyz").status_code == 200


def test_readiness_names_what_is_missing_and_nothing_else(nobody: TestClient, world: World) -> None:
    world.index.is_down = True
    world.embedder.is_down = True
    answer = nobody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unavailable",
        "problems": {"index": "index_unavailable", "models": "models_unavailable"},
    }
    assert nobody.get("/livez").status_code == 200
    world.index.is_down = world.embedder.is_down = False
    assert nobody.get("/readyz").status_code == 503  # looked at once a second
    world.clock.advance(1)
    assert nobody.get("/readyz").status_code == 200


def test_the_queue_is_the_catalogs_while_twenty_files_wait(
    client: TestClient, world: World
) -> None:
    world.ingest("hr/done.pdf")
    for number in range(20):
        world.announce(f"hr/{number}.pdf", b"%PDF-1.7 " + bytes([number]))
    world.clock.advance(42)
    for message in world.catalog.parts.take_outbox(5):
        world.job_queue.publish(Queue.BULK, message.part_id)
    state = client.get("/v1/ops/ingest").json()
    counts = world.catalog.operations.counts(world.tenant_ids["documents"])
    assert state["queue_depth"] == counts.queue_depth == 20
    assert state["oldest_age_s"] == counts.oldest_age_s == 42
    assert {name: n for name, n in state["documents"].items() if n} == {"queued": 20, "ready": 1}
    assert state["stages"]["parse"]["waiting"] == 20
    assert state["outbox_pending"] == counts.outbox_pending
    assert state["num_chunks_active"] == counts.num_chunks_active == 1
    assert state["broker"]["ready"]["bulk"] == 5
    shown = samples(client.get("/metrics").text)
    assert shown["pincite_ingest_queue_depth{}"] == state["queue_depth"]
    assert shown['pincite_ingest_documents{state="queued"}'] == 20
    assert shown['pincite_ingest_documents{state="ready"}'] == 1
    assert shown['pincite_ingest_parts{stage="parse",state="waiting"}'] == 20
    assert shown['pincite_ingest_oldest_age_seconds{stage="parse"}'] == 42
    assert shown["pincite_ingest_outbox_pending{}"] == state["outbox_pending"]
    assert shown["pincite_ingest_chunks_active{}"] == state["num_chunks_active"]
    assert shown['celery_queue_length{queue_name="bulk"}'] == 5


def test_a_broker_that_is_down_hides_nothing_else(client: TestClient, world: World) -> None:
    world.announce("hr/a.pdf", b"%PDF-1.7")
    world.job_queue.is_down = True
    state = client.get("/v1/ops/ingest").json()
    assert state["queue_depth"] == 1
    assert state["broker"] == {"ready": {}, "unacked": None, "problem": "broker_unavailable"}
    shown = samples(client.get("/metrics").text)
    assert shown["pincite_ingest_queue_depth{}"] == 1
    assert shown["pincite_scrape_errors{}"] == 1


def test_what_a_process_works_on_is_told_to_its_owner_only(
    client: TestClient, stranger: TestClient, world: World
) -> None:
    accepted = world.announce("hr/secret-merger.pdf", b"%PDF-1.7")
    now = world.clock.now()
    beat = Heartbeat("h:1:worker", "worker", 1, "h", now, now, doing=accepted.document_id)
    world.catalog.operations.beat(beat)
    (ours,) = client.get("/v1/ops/ingest").json()["processes"]
    assert ours["doing"] == accepted.document_id
    theirs = stranger.get("/v1/ops/ingest").json()
    assert theirs["processes"][0]["doing"] is None
    assert theirs["queue_depth"] == 0


@pytest.fixture
def app(make_world: Callable[..., World]) -> tuple[FastAPI, World]:
    world = make_world(api={"metrics_token": "let-me-scrape"})
    world.ingest()
    return create_app(world.services), world


@pytest.fixture
def outsider(app: tuple[FastAPI, World]) -> Iterator[TestClient]:
    """Somebody on another machine."""
    with TestClient(app[0], base_url="http://127.0.0.1", client=("203.0.113.9", 4711)) as client:
        yield client


def test_metrics_are_open_on_loopback_only(outsider: TestClient, nobody: TestClient) -> None:
    assert nobody.get("/metrics").status_code == 200
    refused = outsider.get("/metrics")
    assert refused.status_code == 401
    assert "pincite_ingest" not in refused.text


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_a_forwarding_header_opens_nothing(
    outsider: TestClient, nobody: TestClient, name: str
) -> None:
    assert outsider.get("/metrics", headers={name: "127.0.0.1"}).status_code == 401
    # and what a proxy on this machine forwards is not local either
    assert nobody.get("/metrics", headers={name: "127.0.0.1"}).status_code == 401


def test_metrics_with_the_token_or_a_key_for_operators(
    outsider: TestClient, app: tuple[FastAPI, World]
) -> None:
    _, world = app

    def get(secret: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        return outsider.get("/metrics", headers=headers).status_code

    assert get("let-me-scrape") == 200
    assert get(world.key(Scope.OPS)) == 200
    assert get(world.key(Scope.SEARCH)) == 403
    assert get("wrong") == 401
    assert get("") == 401


def test_an_operators_key_shows_its_own_tenant(
    outsider: TestClient, app: tuple[FastAPI, World]
) -> None:
    _, world = app
    everything = outsider.get("/metrics", headers={"Authorization": "Bearer let-me-scrape"}).text
    assert samples(everything)["pincite_ingest_chunks_active{}"] == 1
    key = world.key(Scope.OPS, tenant="other")
    theirs = outsider.get("/metrics", headers={"x-api-key": key}).text
    assert samples(theirs)["pincite_ingest_chunks_active{}"] == 0


def test_a_wrong_key_is_refused_on_loopback_too(open_client: OpenClient) -> None:
    assert open_client("wrong").get("/metrics").status_code == 401


def record(bucket: str, key: str) -> dict[str, object]:
    return {"eventVersion": "2.1", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}


def test_events_become_hints_of_the_callers_own_buckets(client: TestClient, world: World) -> None:
    records = [
        record("documents", "hr/a.pdf"),
        record("theirs", "hr/b.pdf"),
        record("pincite-artifacts", "x/y"),
        record("unknown", "c.pdf"),
    ]
    answer = client.post("/v1/internal/object-events", json={"Records": records})
    assert answer.status_code == 202
    assert answer.json() == {"hints": 1}
    hints = world.catalog.intake.take_hints(10)
    assert [tuple(hint) for hint in hints] == [
        (world.tenant_ids["documents"], "documents", "hr/a.pdf")
    ]


def test_a_key_of_one_collection_announces_only_there(
    open_client: OpenClient, world: World
) -> None:
    client = open_client(world.key(collections=["hr"]))
    records = [record("documents", name) for name in ("hr/a.pdf", "plant/b.pdf", "c.pdf")]
    assert client.post("/v1/internal/object-events", json={"Records": records}).json() == {
        "hints": 1
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"no json", 400),
        (b"\xff", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"Records": 1}', 400),
        (b"[" * 100_000, 400),
        (b'{"Records": "' + b"x" * 1_000_001 + b'"}', 413),
    ],
)
def test_what_is_no_event_is_refused(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/v1/internal/object-events", content=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
