"""A generator without a model: it writes what a test says."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import anyio
import anyio.lowlevel

from core.domain.answers import Usage
from core.domain.generation import (
    ChatMessage,
    GenerationEnd,
    GenerationEvent,
    GenerationRequest,
    GeneratorInfo,
    TextPiece,
)
from core.errors import InvalidInput, PinciteError

_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s])|\s+$")
Write = Callable[[GenerationRequest], str]


def tokens(text: str) -> list[str]:
    """Words and marks with the white space before them; joined they are the text."""
    return _TOKEN.findall(text)


def render(messages: Sequence[ChatMessage], *, opens_answer: bool) -> str:
    """A chat template of the simplest kind."""
    turns = "".join(f"<{m.role}>{m.content}</{m.role}>\n" for m in messages)
    return turns + ("<assistant>" if opens_answer else "")


class FakeGenerator:
    """Implements `core.ports.generator.Generator`.

    Args:
        write: the text, or what makes it of the request; it comes token by token.
        error: raised in place of the first piece; with `fails_after`, after so many pieces.
        gate: when set to an Event, the stream waits for it: after `fails_after` pieces.
    `requests` are those that were streamed; `num_open` counts the streams that are not closed.
    """

    def __init__(
        self,
        write: str | Write = "",
        *,
        info: GeneratorInfo | None = None,
        error: PinciteError | None = None,
        fails_after: int = 0,
    ) -> None:
        self.write: Write = (lambda _: write) if isinstance(write, str) else write
        self.told = info or GeneratorInfo(
            "fake", "fake-fingerprint", 4_096, frozenset({"cache_salt", "tokenize"})
        )
        self.error = error
        self.info_error: PinciteError | None = None
        self.fails_after = fails_after
        self.gate: threading.Event | None = None
        self.started = threading.Event()
        self.closed = threading.Event()
        self.requests: list[GenerationRequest] = []
        self.num_open = 0
        self._seen: list[str] = []

    def info(self) -> GeneratorInfo:
        if self.info_error is not None:
            raise self.info_error
        return self.told

    def count_tokens(self, messages: Sequence[ChatMessage], *, opens_answer: bool) -> int:
        return len(tokens(render(messages, opens_answer=opens_answer)))

    async def stream(self, request: GenerationRequest) -> AsyncIterator[GenerationEvent]:
        self.requests.append(request)
        self.num_open += 1
        self.started.set()
        try:
            async for event in self._events(request):
                yield event
        finally:
            self.num_open -= 1
            self.closed.set()

    async def _events(self, request: GenerationRequest) -> AsyncIterator[GenerationEvent]:
        prompt = tokens(render(request.messages, opens_answer=True))
        limit = self.told.max_model_tokens
        if limit is not None and len(prompt) + request.max_tokens > limit:
            raise InvalidInput("the prompt is too long")
        pieces = tokens(self.write(request))
        for number, piece in enumerate(pieces[: request.max_tokens]):
            await self._interrupt(number)
            await anyio.lowlevel.checkpoint()
            yield TextPiece(piece)
        await self._interrupt(len(pieces))
        is_cut = len(pieces) > request.max_tokens
        usage = self._usage(prompt, pieces[: request.max_tokens])
        yield GenerationEnd("length" if is_cut else "stop", usage, 1.5)

    async def _interrupt(self, number: int) -> None:
        if number != self.fails_after:
            return
        # The test that sets it is in another thread.
        while self.gate is not None and not self.gate.is_set():  # noqa: ASYNC110
            await anyio.sleep(0.002)
        if self.error is not None:
            raise self.error

    def _usage(self, prompt: list[str], pieces: list[str]) -> Usage:
        """Cached: what the prompt shares with an earlier one from its beginning."""
        cached = max((_shared(prompt, tokens(seen)) for seen in self._seen), default=0)
        self._seen.append("".join(prompt))
        return Usage(len(prompt), cached, len(pieces))


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))
