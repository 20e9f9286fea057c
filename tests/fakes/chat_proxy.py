"""A language model behind its own chat interface, which says what a test wants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from core.errors import GeneratorUnavailable
from core.ports.chat_proxy import ProxiedResponse


class FakeChatProxy:
    """Implements `core.ports.chat_proxy.ChatProxy`: echoes the last message."""

    def __init__(self) -> None:
        self.is_down = False
        self.bodies: list[dict[str, Any]] = []
        self.salts: list[str] = []
        self.num_open = 0
        self.is_silent = False  # opens, and never says anything

    async def models(self) -> list[dict[str, Any]]:
        if self.is_down:
            raise GeneratorUnavailable("the generator does not answer")
        return [
            {"id": "tiny", "object": "model", "created": 1, "owned_by": "x", "max_model_len": 9}
        ]

    @asynccontextmanager
    async def complete(
        self, body: dict[str, Any], *, cache_salt: str
    ) -> AsyncIterator[ProxiedResponse]:
        await self.models()
        self.bodies.append(body)
        self.salts.append(cache_salt)
        self.num_open += 1
        try:
            if self.is_silent:
                await anyio.sleep_forever()
            yield self._answer(body)
        finally:
            self.num_open -= 1

    async def close(self) -> None:
        self.is_down = True

    def _answer(self, body: dict[str, Any]) -> ProxiedResponse:
        if body["model"] != "tiny":
            error = {"message": "no such model", "type": "not_found_error", "param": "model",
                     "code": "model_not_found"}  # fmt: skip
            return _json(404, {"error": error})
        message = {"role": "assistant", "content": f"echo: {body['messages'][-1]['content']}"}
        return _json(200, {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        })  # fmt: skip


def _json(status: int, body: dict[str, Any]) -> ProxiedResponse:
    async def pieces() -> AsyncIterator[bytes]:
        text = json.dumps(body).encode()
        yield text[:7]
        yield text[7:]

    return ProxiedResponse(status, {"content-type": "application/json"}, pieces())
