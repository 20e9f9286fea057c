"""The generator: a language model behind HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from core.domain.generation import (
        ChatMessage,
        GenerationEvent,
        GenerationRequest,
        GeneratorInfo,
    )


class Generator(Protocol):
    """Raises GeneratorUnavailable (down, or gone in the middle of a stream), Overloaded (429),
    TimedOut (no first token, or not complete, in time); InvalidInput for a request that the server
    refuses.
    """

    def info(self) -> GeneratorInfo:
        """Cached after the first success. Synchronous: called from worker threads."""

    def count_tokens(self, messages: Sequence[ChatMessage], *, opens_answer: bool) -> int:
        """Prompt tokens of these messages under the generator's own chat template and tokenizer;
        `opens_answer`: with the tokens that open the assistant's turn. Where the server cannot
        count, an estimate that is rather too high than too low."""

    def stream(self, request: GenerationRequest) -> AsyncIterator[GenerationEvent]:
        """Text as it is generated, then exactly one GenerationEnd. Closing the iterator (or
        cancelling the task that reads it) drops the connection, which aborts the generation."""
