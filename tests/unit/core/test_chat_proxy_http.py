"""The language model's own interface, passed through."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from core.adapters.chat_proxy_http import HttpChatProxy
from core.errors import GeneratorUnavailable, TimedOut
from core.settings import GeneratorSettings

ASK = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
OURS = {"id": "tiny", "pincite": {"capabilities": ["cache_salt", "tokenize"]}}
Handler = Callable[[httpx.Request], httpx.Response]


class Server:
    """Remembers requests; `models` is what it lists, `answer` what it says."""

    def __init__(self) -> None:
        self.models: Any = {"data": [OURS]}
        self.answer: Handler = lambda _: httpx.Response(200, json={"id": "x"})
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/v1/models":
            return httpx.Response(200, json=self.models)
        return self.answer(request)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(r.content) for r in self.requests if r.method == "POST"]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[HttpChatProxy]:
    settings = GeneratorSettings(url="http://engine:1/", api_key="secret")  # type: ignore[arg-type]
    made = HttpChatProxy(settings, transport=httpx.MockTransport(server))
    yield made
    await made.close()


async def ask(proxy: HttpChatProxy, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    async with proxy.complete(body, cache_salt="salt") as found:
        return found.status, found.headers, b"".join([piece async for piece in found.body])


async def test_our_engine_gets_a_salt_and_nothing_the_caller_says_of_it(
    proxy: HttpChatProxy, server: Server
) -> None:
    forged = ASK | {"pincite": {"cache_salt": "another tenant's"}, "temperature": 0.5}
    status, headers, body = await ask(proxy, forged)
    assert (status, headers, json.loads(body)) == (
        200,
        {"content-type": "application/json"},
        {"id": "x"},
    )
    assert server.bodies == [ASK | {"temperature": 0.5, "pincite": {"cache_salt": "salt"}}]
    assert {r.headers["authorization"] for r in server.requests} == {"Bearer secret"}
    await ask(proxy, ASK)
    assert [r.url.path for r in server.requests].count("/v1/models") == 1


@pytest.mark.parametrize("url", ["http://engine:1", "http://engine:1/v1", "http://engine:1/v1/"])
async def test_the_address_may_end_in_v1_as_for_the_generator(server: Server, url: str) -> None:
    made = HttpChatProxy(GeneratorSettings(url=url), transport=httpx.MockTransport(server))
    await ask(made, ASK)
    await made.close()
    assert [r.url.path for r in server.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_another_server_sees_plain_openai(proxy: HttpChatProxy, server: Server) -> None:
    server.models = {"data": [{"id": "tiny"}]}
    await ask(proxy, ASK | {"pincite": {}})
    assert server.bodies == [ASK]


async def test_errors_of_the_server_pass_as_they_are(proxy: HttpChatProxy, server: Server) -> None:
    server.answer = lambda _: httpx.Response(
        429, json={"error": {"code": "queue_full"}}, headers={"retry-after": "2", "x-other": "1"}
    )
    status, headers, body = await ask(proxy, ASK)
    assert (status, headers) == (429, {"content-type": "application/json", "retry-after": "2"})
    assert json.loads(body) == {"error": {"code": "queue_full"}}


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (httpx.ConnectError("refused"), GeneratorUnavailable),
        (httpx.ReadTimeout("slow"), TimedOut),
        (httpx.RemoteProtocolError("cut"), GeneratorUnavailable),
    ],
)
async def test_a_server_that_is_away_is_a_typed_error(
    proxy: HttpChatProxy, server: Server, raised: Exception, expected: type[Exception]
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise raised

    server.answer = fail
    with pytest.raises(expected):
        await ask(proxy, ASK)


@pytest.mark.parametrize("models", [[], {}, {"data": [{}]}, {"data": 3}])
async def test_something_that_is_no_list_of_models(
    proxy: HttpChatProxy, server: Server, models: Any
) -> None:
    server.models = models
    with pytest.raises(GeneratorUnavailable):
        await proxy.models()
