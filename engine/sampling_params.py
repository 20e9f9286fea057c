"""SamplingParams: how one request's tokens are chosen and when it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.errors import InvalidRequest

# Given the output token ids so far: the ids that may come next, or None for any.
TokenMask: TypeAlias = Callable[[Sequence[int]], "Sequence[int] | None"]

_MAX_STOP_STRINGS = 16


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """
    max_tokens: of the output; None: as many as the context has room for.
    temperature: 0 is greedy (exact argmax, the lowest id among equals).
    top_k: 0 or -1 for all. top_p: nucleus, (0, 1]. min_p: share of the best token's probability.
    presence_penalty, frequency_penalty: OpenAI's, -2..2, over output tokens.
    repetition_penalty: > 0, over prompt and output tokens (1: none).
    seed: the same stream of tokens whatever the batch; None: drawn at random per request.
    stop: strings that end the output; they are not part of it unless `include_stop`.
    stop_token_ids: beside the model's own end tokens; `ignore_eos` switches those off.
    min_tokens: no end token and no stop string before this many.
    token_mask: called before each token, in the engine's thread; must be quick and not raise.
    """

    max_tokens: int | None = 16
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    include_stop: bool = False
    token_mask: TokenMask | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self._check("max_tokens", self.max_tokens is None or self.max_tokens >= 1, "at least 1")
        self._check("temperature", 0.0 <= self.temperature <= 2.0, "between 0 and 2")
        self._check("top_k", self.top_k >= -1, "-1, 0 or more")
        self._check("top_p", 0.0 < self.top_p <= 1.0, "above 0 and at most 1")
        self._check("min_p", 0.0 <= self.min_p <= 1.0, "between 0 and 1")
        for name in ("presence_penalty", "frequency_penalty"):
            self._check(name, -2.0 <= getattr(self, name) <= 2.0, "between -2 and 2")
        is_penalty = math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0.0
        self._check("repetition_penalty", is_penalty, "above 0")
        self._check("min_tokens", self.min_tokens >= 0, "0 or more")
        self._check(
            "stop",
            len(self.stop) <= _MAX_STOP_STRINGS and all(self.stop),
            f"at most {_MAX_STOP_STRINGS} strings, none empty",
        )

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0

    @staticmethod
    def _check(name: str, is_good: bool, wanted: str) -> None:
        if not is_good:
            raise InvalidRequest(f"{name} must be {wanted}", param=name)
