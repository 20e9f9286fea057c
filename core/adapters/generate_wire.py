"""OpenAI's streaming chat completions as bytes and JSON: what is sent, and what comes back.

Server-sent events are cut at LF, CRLF or CR only: JSON may hold any other line break of Unicode.
"""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Any

from core.domain.answers import Usage
from core.domain.generation import GenerationEnd, GenerationEvent, TextPiece
from core.errors import GeneratorUnavailable, InvalidInput, Overloaded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.domain.generation import ChatMessage, GenerationRequest, GeneratorInfo
    from core.errors import PinciteError

EXTENSION = "pincite"  # our own object in requests, and in entries of /v1/models
CACHE_SALT = "cache_salt"
TOKENIZE = "tokenize"
_MAX_LINE_CHARS = 1_000_000
_END = "[DONE]"
_REASONS = {"stop": "stop", "length": "length", "content_filter": "stop"}


def messages_to_json(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def request_to_json(request: GenerationRequest, info: GeneratorInfo) -> dict[str, Any]:
    """The body of `/v1/chat/completions`; the `pincite` object only for who understands it."""
    body: dict[str, Any] = {
        "model": info.model,
        "messages": messages_to_json(request.messages),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.cache_salt and CACHE_SALT in info.capabilities:
        body[EXTENSION] = {
            "cache_salt": request.cache_salt,
            "shared_prefix_tokens": request.shared_prefix_tokens,
        }
    return body


def capabilities_of(model: Mapping[str, Any]) -> frozenset[str]:
    """Of an entry of `/v1/models`; none for a server that is not ours."""
    return frozenset(map(str, (model.get(EXTENSION) or {}).get("capabilities") or ()))


class EventStream:
    """The data of server-sent events, out of bytes that are cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._held = ""
        self._data: list[str] = []

    def push(self, data: bytes) -> list[str]:
        """The events that are whole with these bytes. Raises GeneratorUnavailable for what is no
        UTF-8 or has a line without end."""
        try:
            text = self._held + self._decoder.decode(data)
        except UnicodeDecodeError as error:
            raise malformed("not UTF-8") from error
        *lines, self._held = text.replace("\r\n", "\n").split("\n")
        if len(self._held) > _MAX_LINE_CHARS:
            raise malformed("a line without end")
        found: list[str] = []
        for line in lines:
            self._take(line.rstrip("\r"), found)
        return found

    def _take(self, line: str, found: list[str]) -> None:
        if not line:
            if self._data:
                found.append("\n".join(self._data))
            self._data = []
            return
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))


class Completion:
    """One streamed completion, event by event. Feed it the data of each; `end` closes it."""

    def __init__(self) -> None:
        self.is_done = False
        self._reason: str | None = None
        self._usage = Usage()
        self._queue_ms = 0.0

    def push(self, data: str) -> list[TextPiece]:
        """The text of one event. Raises GeneratorUnavailable, Overloaded, InvalidInput."""
        if data.strip() == _END:
            self.is_done = True
            return []
        try:
            chunk = json.loads(data)
        except json.JSONDecodeError as error:
            raise malformed("not JSON") from error
        if not isinstance(chunk, dict):
            raise malformed("not an object")
        if chunk.get("error"):
            raise _error_in_stream(chunk["error"])
        try:
            return self._read(chunk)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise malformed(type(error).__name__) from error

    def end(self) -> GenerationEvent:
        """Raises GeneratorUnavailable when the completion is not whole."""
        if self._reason is None:
            raise GeneratorUnavailable(
                "the generator's answer ended before it was complete", is_begun=True
            )
        reason = _REASONS.get(self._reason)
        if reason is None:
            raise GeneratorUnavailable(f"the generator gave up: {self._reason[:40]}")
        return GenerationEnd(
            "length" if reason == "length" else "stop", self._usage, self._queue_ms
        )

    def _read(self, chunk: dict[str, Any]) -> list[TextPiece]:
        if chunk.get("usage"):
            self._usage = _usage(chunk["usage"])
        ours = chunk.get("pincite") or {}
        self._queue_ms = float(ours.get("queue_ms") or self._queue_ms)
        pieces: list[TextPiece] = []
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            text = (choice.get("delta") or {}).get("content")
            if text:
                if not isinstance(text, str):
                    raise TypeError
                pieces.append(TextPiece(text))
            if choice.get("finish_reason"):
                self._reason = str(choice["finish_reason"])
        return pieces


def malformed(what: str) -> GeneratorUnavailable:
    return GeneratorUnavailable(
        f"the generator's answer cannot be read: {what}",
        hint="generator.url must be an OpenAI-compatible server",
    )


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> PinciteError:
    """The error of an answer that is none. The server's own words may repeat what we sent, so of
    them only a code is told."""
    told = _told(body)
    if status == 429:
        return Overloaded(
            "the generator has too much waiting", retry_after_s=_retry_after_s(headers)
        )
    if status in {401, 403}:
        return GeneratorUnavailable(
            "the generator refuses our key", hint="check generator.api_key on both sides"
        )
    if status in {404, 405}:
        return GeneratorUnavailable(
            f"the generator answered {status}{told}",
            hint="check generator.url and generator.model",
        )
    if 400 <= status < 500 and status != 408:
        return InvalidInput(f"the generator refuses this request: {status}{told}", status=status)
    return GeneratorUnavailable(f"the generator answered {status}{told}")


def estimate_tokens(messages: Sequence[ChatMessage]) -> int:
    """Rather too many: English has over 4 letters a token, most other scripts under 2."""
    total = 8.0
    for message in messages:
        total += 8
        for character in message.content:
            if character.isascii():
                total += 0.34 if character.isalpha() else 0.2 if character == " " else 1.0
            else:
                total += 1.5
    return int(total) + 1


def _error_in_stream(error: object) -> PinciteError:
    code = error.get("code") or error.get("type") if isinstance(error, dict) else None
    if code in {429, "429", "rate_limit_exceeded", "queue_full"}:
        return Overloaded("the generator has too much waiting")
    return GeneratorUnavailable(f"the generator gave up: {str(code or 'no reason given')[:80]}")


def _told(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        code = error.get("code") or error.get("type")
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f" ({code[:80]})" if isinstance(code, str) else ""


def _usage(told: dict[str, Any]) -> Usage:
    prompt = told.get("prompt_tokens_details") or {}
    completion = told.get("completion_tokens_details") or {}
    accepted = int(completion.get("accepted_prediction_tokens") or 0)
    return Usage(
        prompt_tokens=int(told.get("prompt_tokens") or 0),
        cached_tokens=int(prompt.get("cached_tokens") or 0),
        completion_tokens=int(told.get("completion_tokens") or 0),
        draft_tokens=accepted + int(completion.get("rejected_prediction_tokens") or 0),
        accepted_tokens=accepted,
    )


def _retry_after_s(headers: Mapping[str, str]) -> float:
    try:
        return max(0.1, float(headers.get("Retry-After", "1")))
    except ValueError:
        return 1.0
