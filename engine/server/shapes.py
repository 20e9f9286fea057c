"""OpenAI's objects for generated text: whole and in pieces, for chat and for plain completions."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from engine.outputs import RequestUsage
    from engine.request import FinishReason


class Shape(ABC):
    """The objects of one response: they share id, time and model."""

    id_prefix: str
    whole_object: str
    piece_object: str
    opening_delta: ClassVar[dict[str, Any] | None] = None

    def __init__(self, model: str, fingerprint: str) -> None:
        self._shared = {
            "id": f"{self.id_prefix}-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": f"fp_{fingerprint.rpartition(':')[2][:12]}",
        }

    def opening(self, index: int) -> dict[str, Any] | None:
        """The choice that begins a stream, if there is one."""
        return None if self.opening_delta is None else _chat_delta(index, self.opening_delta, None)

    @abstractmethod
    def delta(self, index: int, text: str, reason: FinishReason | None) -> dict[str, Any]:
        """A choice with a piece of text, or the last one, with the reason."""

    @abstractmethod
    def choice(self, index: int, text: str, reason: FinishReason) -> dict[str, Any]:
        """A whole choice."""

    def piece(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """One object of a stream."""
        return {**self._shared, "object": self.piece_object, "choices": choices}

    def whole(self, choices: list[dict[str, Any]], usage: RequestUsage) -> dict[str, Any]:
        """The object of a response that is no stream."""
        shared = {**self._shared, "object": self.whole_object, "choices": choices}
        return {**shared, "usage": usage_object(usage)}


class ChatShape(Shape):
    id_prefix = "chatcmpl"
    whole_object = "chat.completion"
    piece_object = "chat.completion.chunk"
    opening_delta: ClassVar = {"role": "assistant", "content": ""}

    def delta(self, index: int, text: str, reason: FinishReason | None) -> dict[str, Any]:
        return _chat_delta(index, {"content": text} if text else {}, reason)

    def choice(self, index: int, text: str, reason: FinishReason) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {
            "index": index,
            "message": message,
            "logprobs": None,
            "finish_reason": reason.value,
        }


class CompletionShape(Shape):
    id_prefix = "cmpl"
    whole_object = "text_completion"
    piece_object = "text_completion"

    def delta(self, index: int, text: str, reason: FinishReason | None) -> dict[str, Any]:
        return {
            "index": index,
            "text": text,
            "logprobs": None,
            "finish_reason": None if reason is None else reason.value,
        }

    def choice(self, index: int, text: str, reason: FinishReason) -> dict[str, Any]:
        return self.delta(index, text, reason)


def usage_object(usage: RequestUsage) -> dict[str, Any]:
    """OpenAI's `usage`. Cached tokens are part of the prompt's."""
    return {
        "prompt_tokens": usage.num_prompt_tokens,
        "completion_tokens": usage.num_completion_tokens,
        "total_tokens": usage.num_prompt_tokens + usage.num_completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.num_cached_tokens},
    }


def _chat_delta(index: int, delta: dict[str, Any], reason: FinishReason | None) -> dict[str, Any]:
    return {
        "index": index,
        "delta": delta,
        "logprobs": None,
        "finish_reason": None if reason is None else reason.value,
    }
