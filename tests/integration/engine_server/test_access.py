"""Who may ask, over real sockets, and whose cache blocks are whose."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from engine.server.limits import RequestLimits
from tests.engine_serving import FURTHER_KEYS, INTERNAL_KEY, MODEL, ServedEngine, serving_engine
from tests.fakes.engine_core import FakeEngine

ALICE, BOB = FURTHER_KEYS
LONG = "the same words again and again " * 8
ROUTES = [
    ("GET", "/v1/models"),
    ("GET", f"/v1/models/{MODEL}"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/tokenize"),
    ("GET", "/nothing/here"),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[ServedEngine]:
    """For tests that leave nothing behind in it."""
    with serving_engine() as running:
        yield running


def cached_tokens(
    served: ServedEngine, key: str | None, pincite: dict[str, Any] | None = None, text: str = LONG
) -> int:
    body: dict[str, Any] = {"model": MODEL, "prompt": text, "max_tokens": 1}
    if pincite is not None:
        body["pincite"] = pincite
    with served.http(key) as client:
        response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    return int(response.json()["usage"]["prompt_tokens_details"]["cached_tokens"])


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": INTERNAL_KEY},
        {"Authorization": f"Basic {INTERNAL_KEY}"},
        {"X-Api-Key": INTERNAL_KEY},
    ],
)
def test_every_route_needs_a_key(
    shared: ServedEngine, method: str, path: str, headers: dict[str, str]
) -> None:
    with shared.http(None) as client:
        response = client.request(method, path, headers=headers, json={})
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "invalid_api_key"
        assert response.headers["www-authenticate"] == "Bearer"
        assert INTERNAL_KEY not in response.text


def test_each_key_opens_and_probes_need_none() -> None:
    with serving_engine() as served:
        for key in (INTERNAL_KEY, *FURTHER_KEYS):
            with served.http(key) as client:
                assert client.get("/v1/models").status_code == 200
        with served.http(None) as client:
            for path in ("/livez", "/readyz", "/metrics"):
                assert client.get(path).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]", "a b"])
def test_a_foreign_host_is_refused_before_its_key_is_looked_at(
    shared: ServedEngine, host: str
) -> None:
    with shared.http() as client:
        response = client.get("/v1/models", headers={"Host": host})
        assert response.status_code in (400, 403)  # 400: uvicorn refuses what is no host
        assert client.get("/metrics", headers={"Host": host}).status_code in (400, 403)
        for name in ("localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"):
            assert client.get("/v1/models", headers={"Host": name}).status_code == 200


def test_without_keys_anybody_on_loopback_may_ask_but_not_by_another_host() -> None:
    with serving_engine(internal_key="", further_keys=()) as served, served.http(None) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.get("/v1/models", headers={"Host": "evil.example"}).status_code == 403


def test_keys_share_no_blocks() -> None:
    with serving_engine() as served:
        assert cached_tokens(served, ALICE) == 0
        assert cached_tokens(served, ALICE) > 200
        assert cached_tokens(served, BOB) == 0
        assert cached_tokens(served, INTERNAL_KEY) == 0
        assert cached_tokens(served, INTERNAL_KEY) > 200


def test_a_salt_from_anybody_but_the_internal_caller_is_ignored() -> None:
    with serving_engine() as served:
        assert cached_tokens(served, INTERNAL_KEY, {"cache_salt": "tenant-1"}) == 0
        assert cached_tokens(served, INTERNAL_KEY, {"cache_salt": "tenant-1"}) > 200
        everything_shared = {"cache_salt": "tenant-1", "shared_prefix_tokens": 10_000}
        assert cached_tokens(served, ALICE, everything_shared) == 0
        assert served.engine.submitted[-1].num_shared_prefix_tokens == 0
        # whatever it sends, its blocks are those of its key
        assert cached_tokens(served, ALICE, {"cache_salt": "another"}) > 200
        assert cached_tokens(served, ALICE, {"nonsense": [1]}) > 200


def test_a_sent_salt_is_never_the_salt_of_a_key() -> None:
    with serving_engine() as served:
        assert cached_tokens(served, ALICE) == 0
        assert cached_tokens(served, INTERNAL_KEY, {"cache_salt": ALICE}) == 0


def test_tenants_share_the_prefix_that_the_internal_caller_names_and_nothing_else() -> None:
    shared = "S" * 63  # and the token that begins a text: 64 tokens, 4 blocks
    with serving_engine() as served:
        for tenant, expected in (("one", 0), ("two", 64), ("one", 64 + 48), ("two", 64 + 48)):
            hints = {"cache_salt": tenant, "shared_prefix_tokens": 64}
            found = cached_tokens(served, INTERNAL_KEY, hints, shared + "P" * 50)
            assert found == expected, tenant


def test_without_keys_a_salt_is_ignored() -> None:
    with serving_engine(internal_key="", further_keys=()) as served:
        assert cached_tokens(served, None, {"cache_salt": "a"}) == 0
        assert cached_tokens(served, None, {"cache_salt": "b"}) > 200


def test_a_request_id_comes_back_when_it_is_well_formed(shared: ServedEngine) -> None:
    with shared.http() as client:
        answer = client.get("/livez", headers={"X-Request-ID": "abc-1.2_3"})
        assert answer.headers["x-request-id"] == "abc-1.2_3"
        for bad in ("a b", "x" * 65, "<script>"):
            given = client.get("/livez", headers={"X-Request-ID": bad}).headers["x-request-id"]
            assert given != bad
            assert len(given) == 32


def test_a_body_that_is_too_large() -> None:
    with (
        serving_engine(limits=RequestLimits(max_body_bytes=2_000)) as served,
        served.http() as client,
    ):
        large = {"model": MODEL, "prompt": "x" * 3_000}
        response = client.post("/v1/completions", json=large)
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "request_too_large"

        def pieces() -> Any:  # without a length in the header
            for _ in range(3):
                yield b"x" * 1_000

        assert client.post("/v1/completions", content=pieces()).status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b'"x"', b"{" * 100_000, b'{"prompt": "\\ud800"}', b"\xff\xfe"]
)
def test_a_body_that_is_no_json_object(shared: ServedEngine, body: bytes) -> None:
    with shared.http() as client:
        response = client.post("/v1/completions", content=body)
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "invalid_json"


def test_a_body_that_does_not_come() -> None:
    with serving_engine(limits=RequestLimits(body_s=0.05)) as served:
        connection = served.connect()
        connection.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            + f"Authorization: Bearer {INTERNAL_KEY}\r\n\r\n{{".encode()
        )
        answer = connection.recv(65536)
        connection.close()
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_unknown_paths_and_methods(shared: ServedEngine) -> None:
    with shared.http() as client:
        assert client.get("/v1/embeddings").status_code == 404
        assert client.get("/v1/completions").status_code == 405
        assert client.get("/docs").json()["error"]["code"] == "not_found"


def test_an_unforeseen_failure_is_told_without_its_text(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def reply(prompt: str) -> str:
        raise ZeroDivisionError("address 0x7fff and secret words")

    with serving_engine(FakeEngine(reply)) as served, served.http() as client:
        response = client.post("/v1/completions", json={"model": MODEL, "prompt": "x"})
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "engine_error"
        assert "secret" not in response.text
        assert isinstance(client.get("/v1/models"), httpx.Response)
