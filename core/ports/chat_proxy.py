"""The generator's own chat interface, passed through as it is: for callers who ask it by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True)
class ProxiedResponse:
    """What the server answers, errors included. `body` is read once."""

    status: int
    headers: dict[str, str]  # content type and Retry-After only
    body: AsyncIterator[bytes]


class ChatProxy(Protocol):
    """Raises GeneratorUnavailable when nobody answers, TimedOut."""

    async def models(self) -> list[dict[str, Any]]:
        """The server's own entries of `/v1/models`."""

    def complete(
        self, body: dict[str, Any], *, cache_salt: str
    ) -> AbstractAsyncContextManager[ProxiedResponse]:
        """`POST /v1/chat/completions`. Leaving the block drops the connection, which aborts the
        generation. `cache_salt` keeps the caller's prompts out of everybody else's cache, where
        the server knows of such a thing; what the caller says about caching is not passed on."""

    async def close(self) -> None: ...
