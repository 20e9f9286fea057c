"""The generator behind HTTP: our engine, or any server that speaks OpenAI's chat completions.

Beyond OpenAI's shape it uses what `/v1/models` says of itself: `max_model_len`, and in the object
`pincite` a fingerprint of the weights and the capabilities `cache_salt` (blocks of one tenant are
not shared with others) and `tokenize` (`POST /tokenize` counts, as vLLM's does).

Each generation has a connection of its own, which is closed with it: a server notices at once, and
nothing of one answer can be read into another. Nothing is retried once a generation was sent.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx

from core.adapters.generate_wire import (
    EXTENSION,
    TOKENIZE,
    Completion,
    EventStream,
    capabilities_of,
    estimate_tokens,
    malformed,
    messages_to_json,
    refusal,
    request_to_json,
)
from core.domain.generation import GenerationEvent, GeneratorInfo, TextPiece
from core.errors import GeneratorUnavailable, InvalidInput, PinciteError, TimedOut

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from typing import TypeVar

    from core.domain.generation import ChatMessage, GenerationRequest
    from core.settings import GeneratorSettings

    T = TypeVar("T")

_CONNECT_TIMEOUT_S = 3.0
_ASKING_TIMEOUT_S = 5.0  # of info and token counts: a person waits for them
_FAILURE_COUNTS_S = 1.0
_MAX_REFUSAL_BYTES = 20_000
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class HttpGenerator:
    """Implements `core.ports.generator.Generator`; safe in threads and event loops, not across a
    fork.

    Args:
        settings: the section `generator`; its `url` with or without `/v1`.
        monotonic: seconds, for the time-outs.
    """

    def __init__(
        self, settings: GeneratorSettings, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        secret = settings.api_key.get_secret_value()
        self._settings = settings
        self._url = settings.server_url
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._monotonic = monotonic
        # Reading the certificates takes longer than a question may wait: once, and only for TLS.
        self._verify = httpx.create_ssl_context() if self._url.startswith("https") else False
        self._client = httpx.Client(
            base_url=self._url,
            headers=self._headers,
            timeout=httpx.Timeout(_ASKING_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            verify=self._verify,
            trust_env=False,  # a proxy of this machine must not see document text
        )
        self._lock = threading.Lock()
        self._info: GeneratorInfo | None = None
        self._failure: tuple[float, PinciteError] | None = None

    def info(self) -> GeneratorInfo:
        with self._lock:
            if self._info is None:
                self._info = self._ask_unless_just_failed()
            return self._info

    def count_tokens(self, messages: Sequence[ChatMessage], *, opens_answer: bool) -> int:
        info = self.info()
        if TOKENIZE not in info.capabilities:
            return estimate_tokens(messages)
        body = {
            "model": info.model,
            "messages": messages_to_json(messages),
            "add_generation_prompt": opens_answer,
        }
        counted = self._call("POST", "/tokenize", body)
        try:
            return int(counted["count"])
        except (KeyError, TypeError, ValueError) as error:
            raise malformed("no count") from error

    async def stream(self, request: GenerationRequest) -> AsyncIterator[GenerationEvent]:
        info = self._info
        if info is None:
            info = await anyio.to_thread.run_sync(self.info)
        try:
            async with self._sent(request_to_json(request, info)) as generation:
                async for event in generation:
                    yield event
        except GeneratorUnavailable:
            self._forget()
            raise

    def close(self) -> None:
        """End the idle connections; generations under way have their own."""
        self._client.close()

    def _forget(self) -> None:
        """Ask anew next time: what comes back may be another model."""
        with self._lock:
            self._info = None

    @asynccontextmanager
    async def _sent(self, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[GenerationEvent]]:
        """A generation that is being read; leaving the block closes its connection."""
        limits = _Limits(self._settings, self._monotonic)
        async with httpx.AsyncClient(
            base_url=self._url,
            headers=self._headers,
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            verify=self._verify,
            trust_env=False,
        ) as client:
            request = client.build_request("POST", "/v1/chat/completions", json=body)
            response = await limits.within(lambda: client.send(request, stream=True))
            try:
                if response.status_code >= 300:
                    raise await limits.within(lambda: _refused(response))
                yield _events(response, limits)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    def _ask_unless_just_failed(self) -> GeneratorInfo:
        """Questions that waited for one that failed do not each wait as long as it did."""
        if self._failure is not None:
            failed_at, error = self._failure
            if self._monotonic() - failed_at < _FAILURE_COUNTS_S:
                raise type(error)(error.message, hint=error.hint)
        try:
            info = self._ask()
        except PinciteError as error:
            self._failure = (self._monotonic(), error)
            raise
        self._failure = None
        return info

    def _ask(self) -> GeneratorInfo:
        wanted = self._settings.model
        try:
            listed = self._call("GET", "/v1/models").get("data")
            models = [one for one in listed if one["id"]]
            told = next((one for one in models if wanted in ("", one["id"])), None)
            if told is None and not wanted:
                raise GeneratorUnavailable(f"{self._url} serves no model")
            told = told or {"id": wanted}
            ours = told.get(EXTENSION) or {}
            fingerprint = ours.get("fingerprint") or _fingerprint(self._url, str(told["id"]))
            limit = told.get("max_model_len")
            return GeneratorInfo(
                model=str(told["id"]),
                fingerprint=str(fingerprint),
                max_model_tokens=None if limit is None else int(limit),
                capabilities=capabilities_of(told),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise malformed(f"/v1/models: {type(error).__name__}") from error

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """JSON of a request that may be sent again."""
        for is_last in (False, True):
            try:
                response = self._client.request(method, path, json=body)
            except httpx.TransportError as error:
                # An idle connection that the server closed meanwhile says nothing of the server.
                if isinstance(error, _STALE) and not is_last:
                    continue
                raise _lost(self._url, error) from error
            if response.status_code >= 300:
                raise refusal(response.status_code, response.headers, response.content)
            try:
                return response.json()
            except ValueError as error:
                raise malformed("not JSON") from error
        raise AssertionError("unreachable")


class _Limits:
    """The time-outs of one generation."""

    def __init__(self, settings: GeneratorSettings, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._url = settings.url
        started = monotonic()
        self._total_s = settings.timeout_s
        self._first_s = min(settings.first_token_timeout_s, settings.timeout_s)
        self._deadline = started + self._total_s
        self._first_deadline: float | None = started + self._first_s

    def first_token_came(self) -> None:
        self._first_deadline = None

    async def within(self, work: Callable[[], Awaitable[T]]) -> T:
        """Raises TimedOut, GeneratorUnavailable."""
        waits_for_first = self._first_deadline is not None
        deadline = self._deadline if self._first_deadline is None else self._first_deadline
        try:
            with anyio.fail_after(max(0.0, deadline - self._monotonic())):
                return await work()
        except TimeoutError as error:
            limit_s = self._first_s if waits_for_first else self._total_s
            what = "begin" if waits_for_first else "end"
            raise TimedOut(f"the generator did not {what} within {limit_s:g} s") from error
        except httpx.TransportError as error:
            raise _lost(self._url, error) from error


async def _events(response: httpx.Response, limits: _Limits) -> AsyncIterator[GenerationEvent]:
    """The pieces, then the end."""
    stream, completion = EventStream(), Completion()
    received = response.aiter_raw() if _is_plain(response) else response.aiter_bytes()
    while not completion.is_done:
        data = await limits.within(lambda: anext(received, None))
        if data is None:
            break
        for event in stream.push(data):
            pieces: list[TextPiece] = completion.push(event)
            for piece in pieces:
                limits.first_token_came()
                yield piece
    yield completion.end()


def _is_plain(response: httpx.Response) -> bool:
    return "content-encoding" not in response.headers


async def _refused(response: httpx.Response) -> PinciteError:
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > _MAX_REFUSAL_BYTES:
            break
    return refusal(response.status_code, response.headers, body)


def _lost(url: str, error: httpx.TransportError) -> PinciteError:
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return InvalidInput(f"generator.url is no HTTP address: {url}")
    if isinstance(error, httpx.ReadTimeout | httpx.PoolTimeout | httpx.WriteTimeout):
        return TimedOut("the generator does not answer in time")
    return GeneratorUnavailable(
        f"the generator at {url} does not answer: {type(error).__name__}",
        hint="is it running? see `pincite ops status`",
    )


def _fingerprint(url: str, model: str) -> str:
    """Of a server that does not tell one."""
    return hashlib.sha256(f"{url}\n{model}".encode()).hexdigest()
