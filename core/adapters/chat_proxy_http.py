"""The generator's chat interface over HTTP, bytes in and bytes out."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from core.adapters.generate_wire import CACHE_SALT, EXTENSION, capabilities_of
from core.errors import GeneratorUnavailable, TimedOut
from core.ports.chat_proxy import ProxiedResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from core.settings import GeneratorSettings

_PASSED_ON = ("content-type", "retry-after")
_CONNECT_TIMEOUT_S = 5.0


class HttpChatProxy:
    """Implements `core.ports.chat_proxy.ChatProxy`; belongs to the event loop that uses it."""

    def __init__(
        self, settings: GeneratorSettings, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._knows_salts: dict[str, bool] = {}  # by model
        key = settings.api_key.get_secret_value()
        self._client = httpx.AsyncClient(
            base_url=settings.server_url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_TIMEOUT_S),
            trust_env=False,
            transport=transport,
        )

    async def models(self) -> list[dict[str, Any]]:
        with _typed_errors():
            response = await self._client.get("/v1/models")
        try:
            entries = [entry for entry in response.json()["data"] if entry["id"]]
        except (ValueError, KeyError, TypeError) as error:
            raise GeneratorUnavailable(
                f"the generator answered {response.status_code} to /v1/models, and no list"
            ) from error
        for entry in entries:
            self._knows_salts[entry["id"]] = CACHE_SALT in capabilities_of(entry)
        return entries

    @asynccontextmanager
    async def complete(
        self, body: dict[str, Any], *, cache_salt: str
    ) -> AsyncIterator[ProxiedResponse]:
        request = {name: value for name, value in body.items() if name != EXTENSION}
        if body.get("model") not in self._knows_salts:
            await self.models()
        if self._knows_salts.get(body["model"], False):
            request[EXTENSION] = {CACHE_SALT: cache_salt}
        with _typed_errors():
            async with self._client.stream("POST", "/v1/chat/completions", json=request) as found:
                headers = {
                    name: found.headers[name] for name in _PASSED_ON if name in found.headers
                }
                yield ProxiedResponse(found.status_code, headers, found.aiter_bytes())

    async def close(self) -> None:
        await self._client.aclose()


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise TimedOut("the generator did not answer in time") from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise GeneratorUnavailable("the generator does not answer") from error
