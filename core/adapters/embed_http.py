"""The embedder behind HTTP: our model server, or any that speaks the shape of Hugging Face's
text-embeddings-inference (TEI).

Beyond TEI's shape it sends one header, `X-Pincite-Priority`, which others ignore, and reads one
extra object from `/info`, without which it finds out the dimension with a probe.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from core.domain.search import EmbedderInfo
from core.errors import InvalidInput, ModelsUnavailable, Overloaded, PinciteError
from core.retry import with_retries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.settings import ModelsSettings

PRIORITY_HEADER = "X-Pincite-Priority"
FINGERPRINT_HEADER = "X-Pincite-Model"
_QUESTION, _PASSAGE = "question", "passage"
_MAX_TEXTS = 32  # TEI's own default limit of texts in one request
_CONNECT_TIMEOUT_S = 5.0
_MAX_CONNECTIONS = 16
_MAX_NORM_ERROR = 1e-2
_INFO_FIELDS = ("model_id", "model_sha", "model_dtype", "model_type", "max_input_length")


@dataclass(frozen=True, slots=True)
class _Server:
    """What a server told of itself."""

    info: EmbedderInfo
    max_texts: int
    prompts: frozenset[str]


class HttpEmbedder:
    """Implements `core.ports.models.Embedder`; safe in threads, not across a fork.

    Args:
        settings: `url`, `api_key` and `timeout_s` are used.
        transport: replaces the network in tests.
        sleep: waits between the two quick retries.
    """

    def __init__(
        self,
        settings: ModelsSettings,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        secret = settings.api_key.get_secret_value()
        self._client = httpx.Client(
            base_url=settings.url,
            headers={"Authorization": f"Bearer {secret}"} if secret else {},
            timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS),
            transport=transport,
            trust_env=False,  # a proxy of this machine must not see document text
        )
        self._url = settings.url
        self._sleep = sleep
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def info(self) -> EmbedderInfo:
        return self._described().info

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts, _QUESTION, ("query",))

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts, _PASSAGE, ("passage", "document"))

    def close(self) -> None:
        """End the connections; the embedder cannot be used afterwards."""
        self._client.close()

    def _embed(
        self, texts: Sequence[str], priority: str, prompts: tuple[str, ...]
    ) -> list[list[float]]:
        """In requests as large as the server takes, with the first of `prompts` that it has."""
        server = self._described()
        prompt = next((name for name in prompts if name in server.prompts), None)
        vectors: list[list[float]] = []
        for start in range(0, len(texts), server.max_texts):
            group = list(texts[start : start + server.max_texts])
            vectors += self._request(group, priority, prompt, server)
        return vectors

    def _request(
        self, texts: list[str], priority: str, prompt: str | None, server: _Server | None
    ) -> list[list[float]]:
        """One request. `server` is what is known of it, None while finding out."""
        body: dict[str, Any] = {"inputs": texts, "normalize": True, "truncate": False}
        if prompt is not None:
            body["prompt_name"] = prompt
        response = self._call("POST", "/embed", body=body, headers={PRIORITY_HEADER: priority})
        vectors = _json(response)
        if not isinstance(vectors, list) or len(vectors) != len(texts):
            raise ModelsUnavailable(f"the model server did not give {len(texts)} vectors")
        for vector in vectors:
            _require_unit_length(vector)
        if server is not None:
            self._require_same_model(response, vectors, server.info)
        return vectors

    def _require_same_model(
        self, response: httpx.Response, vectors: list[list[float]], info: EmbedderInfo
    ) -> None:
        """Vectors of two models must never meet in one index. Raises ModelsUnavailable, and asks
        the server again next time."""
        told = response.headers.get(FINGERPRINT_HEADER, info.fingerprint)
        if told != info.fingerprint or any(len(vector) != info.dimension for vector in vectors):
            with self._lock:
                self._server = None
            raise ModelsUnavailable(
                "the model server serves another model than before",
                hint="an index belongs to one model: serve the former one again",
            )

    def _described(self) -> _Server:
        with self._lock:
            if self._server is None:
                self._server = self._ask()
            return self._server

    def _ask(self) -> _Server:
        told = _json(self._call("GET", "/info"))
        try:
            ours: dict[str, Any] = told.get("pincite") or {}
            dimension = ours.get("dimension") or len(self._request(["-"], _QUESTION, None, None)[0])
            info = EmbedderInfo(
                model_id=str(told["model_id"]),
                fingerprint=str(ours.get("fingerprint") or _fingerprint(told)),
                dimension=int(dimension),
                max_tokens=int(told["max_input_length"]),
            )
            max_texts = min(_MAX_TEXTS, int(told.get("max_client_batch_size") or _MAX_TEXTS))
            return _Server(info, max(1, max_texts), frozenset(ours.get("prompts") or ()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelsUnavailable(
                f"{self._url}/info is not what an embedding server tells: {error!r}",
                hint="models.url must be a Pincite model server or a text-embeddings-inference one",
            ) from error

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        def once() -> httpx.Response:
            try:
                response = self._client.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                raise ModelsUnavailable(
                    f"the model server at {self._url} does not answer: {type(error).__name__}",
                    hint="is it running? see `pincite ops status`",
                    is_passing=not isinstance(error, httpx.ReadTimeout | httpx.PoolTimeout),
                ) from error
            if response.status_code >= 300:
                raise _refusal(response)
            return response

        return with_retries(once, should_retry=_is_passing, sleep=self._sleep)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelsUnavailable("the model server's answer is not JSON") from error


def _is_passing(error: Exception) -> bool:
    return isinstance(error, ModelsUnavailable) and bool(error.context.get("is_passing"))


def _refusal(response: httpx.Response) -> PinciteError:
    status = response.status_code
    told = _told(response)
    if status == 429:
        return Overloaded(
            "the model server has too much waiting", retry_after_s=_retry_after_s(response)
        )
    if status in {401, 403}:
        return ModelsUnavailable(
            "the model server refuses our key", hint="check models.api_key on both sides"
        )
    if status in {400, 413, 422}:
        return InvalidInput(f"the model server refuses these texts: {told}", status=status)
    return ModelsUnavailable(
        f"the model server answered {status}: {told}", is_passing=status in {502, 503, 504}
    )


def _told(response: httpx.Response) -> str:
    """The server's own words; never the texts we sent, which it does not repeat."""
    try:
        return str(response.json()["error"])[:200]
    except (ValueError, KeyError, TypeError):
        return "no reason given"


def _retry_after_s(response: httpx.Response) -> float:
    try:
        return max(0.1, float(response.headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0


def _require_unit_length(vector: object) -> None:
    """Raises ModelsUnavailable for what can never be compared: no numbers, NaN, another length."""
    try:
        length = math.sqrt(math.fsum(value * value for value in vector))  # type: ignore[attr-defined]
    except TypeError as error:
        raise ModelsUnavailable("the model server gave something else than vectors") from error
    if not abs(length - 1.0) <= _MAX_NORM_ERROR:  # also true for NaN
        raise ModelsUnavailable(f"the model server gave a vector of length {length}, not 1")


def _fingerprint(told: dict[str, Any]) -> str:
    """Of a server that does not tell one: what identifies its model and pooling."""
    facts = [told.get(name) for name in _INFO_FIELDS]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
