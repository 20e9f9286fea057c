"""What QdrantIndex makes of a server that is down, slow, full, or refuses: told by a small HTTP
server that answers what it is told to."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.adapters import index_qdrant
from core.adapters.index_qdrant import QdrantIndex
from core.domain.search import SearchFilter
from core.errors import IndexUnavailable, InternalError, Overloaded
from core.settings import IndexSettings
from tests.contract.index_adapter.points import ANNE, generation, point
from tests.stack import free_ports

Answer = tuple[int, dict[str, str], Any]
DONE: Answer = (200, {}, {"result": {"operation_id": 1, "status": "completed"}, "time": 0.0})


def error(status: int, reason: str = "because", **headers: str) -> Answer:
    return status, headers, {"status": {"error": reason}, "time": 0.0}


class TalkingServer(ThreadingHTTPServer):
    """Gives `answers` in order, the last one for ever, and remembers what it was asked."""

    daemon_threads = True
    answers: list[Answer]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [DONE]
        self.requests: list[tuple[str, str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: TalkingServer

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, self.path, json.loads(raw) if raw else None))
        answers = self.server.answers
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[TalkingServer]:
    talking = TalkingServer()
    thread = threading.Thread(target=talking.serve_forever, args=(0.02,))
    thread.start()
    yield talking
    talking.shutdown()
    talking.server_close()
    thread.join()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def index(server: TalkingServer, waits: list[float]) -> Iterator[QdrantIndex]:
    made = QdrantIndex(IndexSettings(url=server.url, upsert_points=10), sleep=waits.append)
    yield made
    made.close()


def write(index: QdrantIndex) -> None:
    index.upsert(ANNE, [point("the pump opens", (1, 0, 0))])


def test_a_write_is_repeated_with_the_same_points(
    index: QdrantIndex, server: TalkingServer, waits: list[float]
) -> None:
    server.answers = [error(503), error(502), DONE]
    write(index)
    assert len(server.requests) == 3
    assert server.requests[0] == server.requests[1] == server.requests[2]
    assert "wait=true" in server.requests[0][1]
    assert len(waits) == 2


def test_after_two_retries_the_index_is_unavailable(
    index: QdrantIndex, server: TalkingServer
) -> None:
    server.answers = [error(503, "starting")]
    with pytest.raises(IndexUnavailable, match="starting"):
        write(index)
    assert len(server.requests) == 3


def test_nobody_listening_is_unavailable(waits: list[float]) -> None:
    (port,) = free_ports(1)
    index = QdrantIndex(IndexSettings(url=f"http://127.0.0.1:{port}"), sleep=waits.append)
    with pytest.raises(IndexUnavailable, match="does not answer"):
        index.manifest()
    assert len(waits) == 2


@pytest.mark.parametrize(("headers", "wait"), [({"Retry_After": "7"}, 7.0), ({}, 1.0)])
def test_pushing_back_is_overloaded_and_not_repeated(
    index: QdrantIndex, server: TalkingServer, headers: dict[str, str], wait: float
) -> None:
    server.answers = [error(429, **headers)]
    with pytest.raises(Overloaded) as caught:
        write(index)
    assert caught.value.retry_after_s == wait
    assert len(server.requests) == 1


def test_a_full_disk_is_unavailable_and_not_repeated(
    index: QdrantIndex, server: TalkingServer
) -> None:
    server.answers = [error(507, "No space left on device")]
    with pytest.raises(IndexUnavailable, match="No space left"):
        write(index)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_says_so(index: QdrantIndex, server: TalkingServer, status: int) -> None:
    server.answers = [error(status)]
    with pytest.raises(IndexUnavailable) as caught:
        index.manifest()
    assert caught.value.hint == "check index.api_key"


def test_a_refused_request_is_a_bug_of_ours(index: QdrantIndex, server: TalkingServer) -> None:
    server.answers = [error(400, "Wrong input: vectors are configured differently")]
    with pytest.raises(InternalError, match="configured differently"):
        write(index)


def test_another_shape_of_answer_is_unavailable(index: QdrantIndex, server: TalkingServer) -> None:
    server.answers = [(200, {}, {"result": "hello"})]
    with pytest.raises(IndexUnavailable, match="another shape"):
        index.count(ANNE, "doc_a", generation("one"))


def test_a_collection_of_somebody_else_is_refused(
    index: QdrantIndex, server: TalkingServer
) -> None:
    config: dict[str, Any] = {
        "params": {},
        "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
    }
    info = {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "config": config,
        "payload_schema": {},
    }
    server.answers = [(200, {}, {"result": info, "status": "ok", "time": 0.0})]
    with pytest.raises(IndexUnavailable, match="no Pincite manifest"):
        index.manifest()


def test_requests_stay_under_the_limits(
    index: QdrantIndex, server: TalkingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.upsert(ANNE, [point("pump", (1, 0, 0), ordinal=n) for n in range(25)])
    assert [len(body["points"]) for _, _, body in server.requests] == [10, 10, 5]

    server.requests.clear()
    monkeypatch.setattr(index_qdrant, "_MAX_REQUEST_BYTES", 5_000)
    index.upsert(ANNE, [point("pump " * 100, (1, 0, 0), ordinal=n) for n in range(8)])
    assert len(server.requests) > 2
    assert sum(len(body["points"]) for _, _, body in server.requests) == 8
    assert all(len(json.dumps(body)) <= 5_000 for _, _, body in server.requests)


def test_every_request_carries_the_tenant(index: QdrantIndex, server: TalkingServer) -> None:
    """Searches, counts and deletes are filtered inside the index, whatever the caller narrows."""
    calls: list[Callable[[], object]] = [
        lambda: index.search(
            ANNE, dense=(1.0, 0.0, 0.0), lexical=None, limit=3, where=SearchFilter()
        ),
        lambda: index.count(ANNE, "doc_a", generation("one")),
        lambda: index.delete_generation(ANNE, "doc_a", generation("one")),
        lambda: list(index.generations(ANNE)),
    ]
    server.answers = [error(404)]
    for call in calls:
        call()
    filters = [
        body["searches"][0]["filter"] if "searches" in body else body["filter"]
        for _, _, body in server.requests
    ]
    assert len(filters) == len(calls)
    wanted = {"key": "tenant", "match": {"value": "ten_anne"}}
    assert all(wanted in conditions["must"] for conditions in filters)
