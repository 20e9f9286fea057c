"""What is asked of a generator, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from core.domain.answers import Usage


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """
    shared_prefix_tokens: leading tokens that every caller's prompt begins with (the constant system
        prefix): their KV blocks may be shared between tenants.
    cache_salt: keeps all later blocks to one tenant. Generators without these capabilities never
        see either.
    """

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    shared_prefix_tokens: int = 0
    cache_salt: str = ""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the output; the pieces joined are all of it."""

    text: str


@dataclass(frozen=True, slots=True)
class GenerationEnd:
    """Always the last event of a complete generation. `queue_ms` is 0 where it is not told."""

    finish_reason: Literal["stop", "length"]
    usage: Usage = field(default_factory=Usage)
    queue_ms: float = 0.0


GenerationEvent: TypeAlias = TextPiece | GenerationEnd


@dataclass(frozen=True, slots=True)
class GeneratorInfo:
    """
    model: the name it is asked by.
    fingerprint: of the weights where the server tells one (ours does), else of URL and name: what
        a verdict of the generator gate belongs to.
    max_model_tokens: prompt + output; None when it is not told.
    capabilities: of `pincite` extensions: "cache_salt", "tokenize".
    """

    model: str
    fingerprint: str
    max_model_tokens: int | None = None
    capabilities: frozenset[str] = frozenset()
