"""What was acknowledged is there after the process dies, and a directory has one owner."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException

from pincite.servers.index.__main__ import KEY_VARIABLE, main
from pincite.servers.index.store import IndexStore
from tests.contract.index import dataset
from tests.contract.index.answers import difference, plain
from tests.stack import ROOT, Index, clean_environ, index_server, wait_until

NAME, ALIAS = "chunks", "current"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """A server that these tests kill and start again."""
    index = index_server(tmp_path_factory.mktemp("killed"))
    index.server.start()
    yield index
    index.server.stop()


@pytest.fixture
def client(index: Index) -> Iterator[QdrantClient]:
    client = connect(index)
    yield client
    client.delete_collection(NAME)
    client.close()


def connect(index: Index) -> QdrantClient:
    # The compatibility check runs in a thread of the client, and warns when the server is down.
    return QdrantClient(
        url=index.url, headers={"api-key": index.api_key}, check_compatibility=False
    )


def everything(client: QdrantClient, name: str = NAME) -> Any:
    return plain(client.scroll(name, limit=10_000, with_vectors=True)[0])


def point_to(name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=name, alias_name=ALIAS)
    )


def test_acknowledged_updates_survive_kill_9(index: Index, client: QdrantClient) -> None:
    rows = dataset.points(seed=5, num_points=300)
    dataset.fill(client, NAME, rows)
    client.create_payload_index(NAME, "tenant", models.PayloadSchemaType.KEYWORD, wait=True)
    client.update_collection(NAME, metadata={"schema": 1})
    client.update_collection_aliases([point_to(NAME)])
    client.set_payload(NAME, {"seen": True}, [str(row.id) for row in rows[:5]], wait=True)
    client.delete(NAME, [str(row.id) for row in rows[5:9]], wait=True)
    client.upsert(NAME, [models.PointStruct(id=1, vector={}, payload={"last": 1})], wait=True)
    before = everything(client)
    index.server.restart()  # SIGKILL right after the last answer
    assert difference(everything(client, ALIAS), before) is None
    info = client.get_collection(ALIAS)
    assert info.config.metadata == {"schema": 1}
    assert set(info.payload_schema) == {"tenant"}
    condition = models.FieldCondition(key="tenant", match=models.MatchValue(value="ten_1"))
    found = client.count(NAME, count_filter=models.Filter(must=[condition])).count
    expected = [row for row in before if row["payload"].get("tenant") == "ten_1"]
    assert found == len(expected) > 50


def test_killed_in_a_stream_of_batches_it_keeps_the_acknowledged_ones(
    index: Index, client: QdrantClient
) -> None:
    # Another process pulls the trigger while batches flow: whatever was acknowledged must be
    # there, and no point of the batch in flight may be half there.
    rows = dataset.points(seed=6, num_points=400)
    dataset.fill(client, NAME, [])
    shot = f"import os, sys; sys.stdin.read(1); os.kill({index.server.pid}, {int(signal.SIGKILL)})"
    killer = subprocess.Popen([sys.executable, "-c", shot], stdin=subprocess.PIPE)
    assert killer.stdin is not None
    acknowledged: list[models.PointStruct] = []
    batches = [rows[start : start + 20] for start in range(0, len(rows), 20)]
    for number, batch in enumerate(cycle(batches)):  # the same again is the same as once
        if number == 5:
            killer.stdin.write(b"x")
            killer.stdin.flush()
        try:
            client.upsert(NAME, batch, wait=True)
        except ResponseHandlingException:
            break
        acknowledged += batch
    killer.stdin.close()
    assert killer.wait(20) == 0
    index.server.restart()
    assert len(acknowledged) >= 100
    there = {record["id"]: record for record in everything(client)}
    for row in acknowledged:
        assert there[str(row.id)]["payload"] == plain(row.payload)
    sent = {str(row.id): row.vector for row in rows}
    for point_id, record in there.items():
        vector = sent[point_id]
        assert isinstance(vector, dict)
        assert set(record["vector"]) == set(vector)


def test_refused_updates_leave_nothing_behind_a_crash(index: Index, client: QdrantClient) -> None:
    # The edge library logs an update before it looks at it, and would replay these differently:
    # the first as a point without vectors, the third so that the shard cannot be read any more.
    dataset.fill(client, NAME, dataset.points(seed=7, num_points=5))
    before = everything(client)
    good = {"dense": dataset.dense(random.Random(1))}
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"a": deep}
    short = {"dense": [1.0]}
    bodies: list[tuple[str, str, Any]] = [
        ("PUT", "points", {"points": [{"id": 11, "vector": {**good, "nope": [1.0]}}]}),
        ("PUT", "points", {"points": [{"id": 12, "vector": good}, {"id": 13, "vector": short}]}),
        ("PUT", "points", {"points": [{"id": 14, "vector": good, "payload": deep}]}),
        ("POST", "points/payload", {"payload": {"x": 1}, "points": [before[0]["id"], 999]}),
        ("POST", "points/vectors/delete", {"points": [before[0]["id"]], "vector": ["nope"]}),
    ]
    with httpx.Client(base_url=index.url, headers={"api-key": index.api_key}) as http:
        for method, path, body in bodies:
            answer = http.request(method, f"/collections/{NAME}/{path}", json=body)
            assert answer.status_code in (400, 404), answer.text
    assert everything(client) == before
    index.server.restart()
    assert everything(client) == before


def test_half_made_and_half_deleted_shards_are_removed_at_the_start(
    index: Index, client: QdrantClient
) -> None:
    dataset.fill(client, NAME, dataset.points(seed=7, num_points=5))
    index.server.kill()
    shards = index.server.folder / "data" / "collections"
    (kept,) = shards.iterdir()
    # As a create that died before its commit, and a delete that died after it, leave them.
    for name in ("0" * 32, "1" * 32):
        (shards / name / "wal").mkdir(parents=True)
        (shards / name / "wal" / "open-1").write_bytes(b"\0" * 64)
    (shards.parent / "registry.tmp").write_text('{"format": 1, "colle')
    index.server.start()
    assert [path.name for path in shards.iterdir()] == [kept.name]
    assert client.count(NAME).count == 5
    client.delete_collection(NAME)
    assert list(shards.iterdir()) == []


def test_a_signal_stops_it_cleanly_with_everything_flushed(tmp_path: Path) -> None:
    signals = {
        signal.SIGTERM: index_server(tmp_path / "term"),
        signal.SIGINT: index_server(tmp_path / "int"),
    }
    processes = {
        number: subprocess.Popen(
            index.server.command,
            env={**clean_environ(), **index.server.environ},
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        for number, index in signals.items()
    }
    try:
        for number, index in signals.items():
            wait_until(index.server.is_ready, timeout_s=60, what="the server")
            client = connect(index)
            dataset.fill(client, NAME, dataset.points(seed=7, num_points=20))
            client.close()
            processes[number].send_signal(number)
        assert [process.wait(20) for process in processes.values()] == [0, 0]
    finally:
        for process in processes.values():
            process.kill()
    for process in processes.values():
        events = [json.loads(line)["event"] for line in process.communicate()[1].splitlines()]
        assert events == ["index.serving", "index.stopped"]
    for index in signals.values():
        store = IndexStore.open(index.server.folder / "data")
        with store.use(NAME) as collection:
            assert collection.count() == 20
        store.close()


def test_a_second_owner_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    store = IndexStore.open(tmp_path)
    for arguments in (["--port", "1"], ["--optimize"]):
        assert main(["--data-dir", str(tmp_path), *arguments]) == 4
        assert f"already owned by process {os.getpid()}" in capsys.readouterr().err
    store.close()
    assert main(["--data-dir", str(tmp_path), "--optimize"]) == 0


def test_a_stopped_index_can_be_optimised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = models.CreateCollection(vectors=dataset.vectors_config())
    store = IndexStore.open(tmp_path)
    store.create(NAME, config)
    store.close()
    assert main(["--data-dir", str(tmp_path), "--optimize"]) == 0
    assert capsys.readouterr().out == f"{NAME}\talready optimal\n"


def test_a_registry_that_cannot_be_read_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    for content in ("{", json.dumps({"format": 99}), json.dumps({"format": 1, "aliases": 3})):
        (tmp_path / "registry.json").write_text(content)
        assert main(["--data-dir", str(tmp_path), "--port", "1"]) == 4
        assert "cannot read the index registry" in capsys.readouterr().err


def test_a_shard_that_cannot_be_read_stops_the_start_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    store = IndexStore.open(tmp_path)
    store.create(NAME, models.CreateCollection(vectors=dataset.vectors_config()))
    store.close()
    (shard,) = (tmp_path / "collections").iterdir()
    (shard / "edge_config.json").write_text("not json")
    for segment in (shard / "segments").iterdir():
        (segment / "segment.json").write_text("not json")
    assert main(["--data-dir", str(tmp_path), "--port", "1"]) == 4
    assert f"cannot load the shard of collection `{NAME}`" in capsys.readouterr().err
    assert (shard / "segments").is_dir()


def test_no_key_and_no_permission_to_go_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["--data-dir", str(tmp_path), "--port", "1"]
    assert main(start) == 2
    assert f"{KEY_VARIABLE} is not set" in capsys.readouterr().err
    assert main([*start, "--no-auth", "--host", "0.0.0.0"]) == 2
    assert "without an API key" in capsys.readouterr().err
