"""The model server's HTTP shape, over a fake encoder."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from core.errors import InvalidInput
from pincite.servers.models.access import Access
from pincite.servers.models.app import MAX_BODY_BYTES, MAX_TEXTS, Service, create_app
from pincite.servers.models.freed_memory import give_back_freed
from pincite.servers.models.metrics import ModelsMetrics
from pincite.servers.models.owner import ModelOwner, TextEncoder
from pincite.servers.models.queueing import EmbedJob, Limits, Priority, WorkQueue
from tests.fakes.encoder import FakeEncoder
from tests.fakes.models import hashed_vector
from tests.stack import wait_until

KEY = "the key"


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture
def service(encoder: FakeEncoder) -> Iterator[Service]:
    limits = Limits(max_waiting=6, max_batch_passages=2)
    queue = WorkQueue(limits)
    metrics = ModelsMetrics(queue)
    owner = ModelOwner(lambda: encoder, queue, metrics.record_batch)
    owner.start()
    yield Service(encoder, owner, queue, limits, metrics)
    encoder.gate.set()
    owner.stop()


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(service, Access(KEY))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1",
        headers={"Authorization": f"Bearer {KEY}"},
    ) as made:
        yield made


async def embed(client: httpx.AsyncClient, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return await client.post("/embed", content=content, headers=headers)


def told(response: httpx.Response) -> tuple[int, str]:
    """Status and error type; every refusal has both fields of TEI's."""
    body = response.json()
    assert set(body) == {"error", "error_type"}
    assert body["error"]
    return response.status_code, body["error_type"]


async def test_one_text_or_many(client: httpx.AsyncClient, encoder: FakeEncoder) -> None:
    one = await embed(client, {"inputs": "why?"})
    assert (one.status_code, one.json()) == (200, [hashed_vector("why?")])
    many = await embed(client, {"inputs": ["a", "b", "c"], "truncate": False, "normalize": True})
    assert many.json() == [hashed_vector(text) for text in ("a", "b", "c")]
    assert many.headers["X-Pincite-Model"] == "fake-fingerprint"
    assert [len(batch) for batch in encoder.batches] == [1, 2, 1]
    assert encoder.thread_names == {"model-owner"}


async def test_a_prompt_is_passed_on(client: httpx.AsyncClient, encoder: FakeEncoder) -> None:
    response = await embed(client, {"inputs": "why?", "prompt_name": "query"})
    assert response.status_code == 200
    assert encoder.prompt_names == ["query"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"inputs": []}, (400, "Empty")),
        ({}, (422, "Tokenizer")),
        ({"inputs": 5}, (422, "Tokenizer")),
        ({"inputs": ["a", 5]}, (422, "Tokenizer")),
        ({"inputs": "a", "truncate": True}, (422, "Tokenizer")),
        ({"inputs": "a", "normalize": False}, (422, "Tokenizer")),
        ({"inputs": "a", "dimensions": 8}, (422, "Tokenizer")),
        ("{not json", (422, "Tokenizer")),
        ({"inputs": "a", "prompt_name": "unknown"}, (413, "Validation")),
        ({"inputs": ["a"] * (MAX_TEXTS + 1)}, (413, "Validation")),
        ({"inputs": "word " * 63}, (413, "Validation")),
        ({"inputs": "a" * MAX_BODY_BYTES}, (413, "Validation")),
        ({"inputs": "raise"}, (424, "Backend")),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_refusals(client: httpx.AsyncClient, body: Any, expected: tuple[int, str]) -> None:
    assert told(await embed(client, body)) == expected


async def test_a_text_of_exactly_the_limit_is_served(client: httpx.AsyncClient) -> None:
    assert (await embed(client, {"inputs": "word " * 62})).status_code == 200


async def test_refusals_do_not_repeat_the_texts(client: httpx.AsyncClient) -> None:
    response = await embed(client, {"inputs": ["secret"], "truncate": "secret"})
    assert response.status_code == 422
    assert "secret" not in response.text


async def test_after_a_failed_batch_the_next_is_served(client: httpx.AsyncClient) -> None:
    assert (await embed(client, {"inputs": ["raise", "a", "b"]})).status_code == 424
    assert (await embed(client, {"inputs": "a"})).status_code == 200


async def test_a_question_overtakes_waiting_passages(
    client: httpx.AsyncClient, encoder: FakeEncoder, service: Service
) -> None:
    encoder.gate.clear()
    passages = asyncio.create_task(embed(client, {"inputs": ["p1", "p2", "p3", "p4"]}))
    await asyncio.to_thread(encoder.has_begun.wait)
    question = asyncio.create_task(
        embed(client, {"inputs": "why?"}, **{"X-Pincite-Priority": "question"})
    )
    await until_waiting(service, Priority.QUESTION, 1)
    encoder.gate.set()
    assert (await passages).status_code == (await question).status_code == 200
    assert encoder.batches == [["p1", "p2"], ["why?"], ["p3", "p4"]]


async def until_waiting(service: Service, level: Priority, num_texts: int) -> None:
    await asyncio.to_thread(
        wait_until,
        lambda: service.queue.depth(level) >= num_texts,
        timeout_s=30,
        what=f"{num_texts} waiting texts",
    )


async def test_an_unknown_priority_is_refused(client: httpx.AsyncClient) -> None:
    response = await embed(client, {"inputs": "a"}, **{"X-Pincite-Priority": "urgent"})
    assert told(response) == (413, "Validation")


async def test_too_much_waiting_is_429_with_retry_after(
    client: httpx.AsyncClient, encoder: FakeEncoder, service: Service
) -> None:
    encoder.gate.clear()
    first = asyncio.create_task(embed(client, {"inputs": ["p1", "p2"]}))
    await asyncio.to_thread(encoder.has_begun.wait)
    second = asyncio.create_task(embed(client, {"inputs": ["w"] * 6}))
    await until_waiting(service, Priority.PASSAGE, 6)
    refused = await embed(client, {"inputs": "one more"})
    assert told(refused) == (429, "Overloaded")
    assert int(refused.headers["Retry-After"]) >= 1
    encoder.gate.set()
    assert (await first).status_code == (await second).status_code == 200


async def test_info_has_teis_fields_and_ours(client: httpx.AsyncClient) -> None:
    info = (await client.get("/info")).json()
    assert info["model_id"] == "fake"
    assert info["max_input_length"] == 64
    assert info["max_client_batch_size"] == MAX_TEXTS
    assert info["auto_truncate"] is False
    assert info["pincite"] == {
        "fingerprint": "fake-fingerprint",
        "dimension": 32,
        "prompts": ["query"],
        "device": "cpu",
    }


@pytest.mark.parametrize("path", ["/rerank", "/embed_all", "/embed_sparse", "/predict", "/x/y"])
async def test_what_an_embedder_has_not_is_404(client: httpx.AsyncClient, path: str) -> None:
    assert told(await client.post(path, json={})) == (404, "Validation")


class TestAccess:
    @pytest.mark.parametrize("path", ["/health", "/livez", "/readyz", "/metrics"])
    async def test_health_needs_no_key(self, client: httpx.AsyncClient, path: str) -> None:
        response = await client.get(path, headers={"Authorization": ""})
        assert response.status_code == 200

    @pytest.mark.parametrize("given", ["", "Bearer wrong", "Bearer ", KEY[:-1]])
    async def test_the_rest_does(self, client: httpx.AsyncClient, given: str) -> None:
        for path in ("/info", "/embed"):
            response = await client.get(path, headers={"Authorization": given})
            assert told(response) == (401, "Validation")

    async def test_metrics_may_need_it_too(self, service: Service) -> None:
        app = create_app(service, Access(KEY, None, open_metrics=False))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://models") as client:
            assert (await client.get("/metrics")).status_code == 401
            assert (await client.get("/livez")).status_code == 200

    async def test_a_foreign_host_is_refused_everywhere(self, client: httpx.AsyncClient) -> None:
        for path in ("/info", "/livez"):
            response = await client.get(path, headers={"Host": "evil.example"})
            assert told(response) == (403, "Validation")


async def test_health_fails_when_the_models_thread_ended(
    client: httpx.AsyncClient, service: Service
) -> None:
    service.owner.stop()
    assert told(await client.get("/readyz"))[0] == 424
    assert told(await embed(client, {"inputs": "a"})) == (424, "Backend")


async def test_metrics_count_requests_batches_and_tokens(client: httpx.AsyncClient) -> None:
    await embed(client, {"inputs": ["a", "b", "c"]})
    await embed(client, {"inputs": []})
    text = (await client.get("/metrics")).text
    assert 'pincite_models_requests_total{level="passage",status="200"} 1.0' in text
    assert 'pincite_models_requests_total{level="passage",status="400"} 1.0' in text
    assert 'pincite_models_batch_texts_count{level="passage"} 2.0' in text
    assert 'pincite_models_tokens_total{level="passage"} 9.0' in text
    assert "process_resident_memory_bytes" in text


def test_a_model_that_cannot_be_loaded_is_told_to_who_starts_it() -> None:
    def load() -> TextEncoder:
        raise InvalidInput("broken weights")

    owner = ModelOwner(load, WorkQueue(Limits()), lambda batch, seconds: None)
    with pytest.raises(InvalidInput, match="broken weights"):
        owner.start()


async def test_freed_memory_is_given_back_once_in_each_pause(encoder: FakeEncoder) -> None:
    pauses: list[int] = []
    queue = WorkQueue(Limits())
    owner = ModelOwner(
        lambda: encoder,
        queue,
        lambda batch, seconds: None,
        on_idle=lambda: pauses.append(len(pauses)),
        idle_s=0.01,
    )
    owner.start()
    try:
        wait_until(lambda: pauses == [0], timeout_s=10, what="the pause after loading")
        job = EmbedJob(["a"], [3], Priority.QUESTION, None)
        queue.put(job)
        await asyncio.wrap_future(job.future)
        wait_until(lambda: pauses == [0, 1], timeout_s=10, what="the pause after a batch")
    finally:
        owner.stop()
    assert pauses == [0, 1]
    assert not owner.is_alive


def test_giving_back_freed_memory_leaves_what_is_in_use() -> None:
    kept = [bytes([number % 256]) * 100_000 for number in range(50)]
    assert give_back_freed() in {True, False}
    assert all(part == bytes([number % 256]) * 100_000 for number, part in enumerate(kept))
