"""One connection to a Qdrant server: made at first use, retried when that can help, and with the
client's errors in our words."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, TypeVar

import httpx

from core.errors import IndexUnavailable, InternalError, Overloaded, PinciteError
from core.retry import with_retries

if TYPE_CHECKING:
    from collections.abc import Callable

    from qdrant_client import QdrantClient

    from core.settings import IndexSettings

_T = TypeVar("_T")
_REFUSED_KEY = frozenset({401, 403})
_PASSING = frozenset({408, 500, 502, 503, 504})
_FULL_OR_TAKEN = frozenset({409, 507})
_MAX_REASON_CHARS = 300


class NotThere(Exception):
    """404: the qdrant collection, the alias or a point. Callers say what that means to them."""


class QdrantConnection:
    """Safe in threads, not across a fork."""

    def __init__(self, settings: IndexSettings, sleep: Callable[[float], None]) -> None:
        self._settings = settings
        self._sleep = sleep
        self._lock = threading.Lock()
        self._client: QdrantClient | None = None

    def call(self, operation: Callable[[QdrantClient], _T]) -> _T:
        """The result of one request, which must be safe to repeat.

        Raises NotThere, IndexUnavailable, Overloaded, InternalError (a request the server refuses).
        """

        def once() -> _T:
            try:
                return operation(self._connected())
            except Exception as error:
                told = _translated(error, self._settings.url)
                if told is None:
                    raise
                raise told from error

        return with_retries(once, should_retry=_is_passing, sleep=self._sleep)

    def close(self) -> None:
        """End the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _connected(self) -> QdrantClient:
        with self._lock:
            if self._client is None:
                self._client = _connect(self._settings)
            return self._client


def _connect(settings: IndexSettings) -> QdrantClient:
    from qdrant_client import QdrantClient

    secret = settings.api_key.get_secret_value()
    return QdrantClient(
        url=settings.url,
        headers={"api-key": secret} if secret else None,  # `api_key=` warns about loopback HTTP
        timeout=int(settings.timeout_s),
        check_compatibility=False,
        trust_env=False,
    )


def _is_passing(error: Exception) -> bool:
    return isinstance(error, IndexUnavailable) and bool(error.context.get("is_passing"))


def _translated(error: Exception, url: str) -> Exception | None:
    """Our error for one of the client's; None for what is not the client's."""
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, ResourceExhaustedResponse):
        return Overloaded("the index pushes back", retry_after_s=float(error.retry_after_s))
    if isinstance(error, ResponseHandlingException):
        source = error.source
        if isinstance(source, httpx.TransportError):
            return IndexUnavailable(
                f"the index at {url} does not answer: {type(source).__name__}",
                hint="is it running? see `pincite ops status`",
                is_passing=True,
            )
        return IndexUnavailable(f"the index at {url} gave an answer of another shape")
    if isinstance(error, UnexpectedResponse):
        if error.status_code == 404:
            return NotThere()
        return _from_status(error.status_code or 0, _reason(error.content))
    return None


def _from_status(status: int, reason: str) -> PinciteError:
    if status == 429:
        return Overloaded("the index pushes back")
    if status in _REFUSED_KEY:
        return IndexUnavailable("the index refuses our key", hint="check index.api_key")
    if status in _PASSING or status in _FULL_OR_TAKEN:
        return IndexUnavailable(
            f"the index answered {status}: {reason}",
            is_passing=status in _PASSING,
            is_conflict=status == 409,
        )
    return InternalError(f"the index refused a request of ours ({status}): {reason}")


def _reason(content: bytes) -> str:
    try:
        return str(json.loads(content)["status"]["error"])[:_MAX_REASON_CHARS]
    except (ValueError, KeyError, TypeError):
        return content[:_MAX_REASON_CHARS].decode("utf-8", "replace")
