"""Intake: the door of the engine. Everything that can be told to a caller at once is told here, in
the caller's thread: what is wrong with the request, that the queue is full, that the engine stops.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineStopped, InvalidRequest, PromptTooLong, QueueFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.request import Request

_SEED_BITS = 63
_NEWEST = 0.2  # weight of the newest interval in the moving average
_RETRY_AFTER_S = (1.0, 60.0)


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """
    max_request_tokens: prompt + output of one request: the model's context or, when that is
        smaller, the whole block pool.
    max_requests: in the engine at once, running and waiting.
    """

    vocab_size: int
    max_request_tokens: int
    max_requests: int
    end_token_ids: frozenset[int]


class Intake:
    """Thread-safe. Each admitted request is given back once, with `ended`."""

    def __init__(self, limits: IntakeLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._live: set[str] = set()
        self._closed_because = ""
        self._last_end_s: float | None = None
        self._seconds_per_request = 0.0

    def prepare(self, request: Request) -> None:
        """Check the request and resolve what its sampling parameters leave open.

        Raises InvalidRequest or PromptTooLong.
        """
        _check(request, self._limits)
        sampling = request.sampling
        room = self._limits.max_request_tokens - request.num_prompt_tokens
        request.max_output_tokens = min(sampling.max_tokens or room, room)
        request.seed = secrets.randbits(_SEED_BITS) if sampling.seed is None else sampling.seed
        ends = frozenset() if sampling.ignore_eos else self._limits.end_token_ids
        request.end_token_ids = ends.union(sampling.stop_token_ids)
        request.arrival_s = self._clock()

    def admit(self, request: Request, enter: Callable[[], None]) -> None:
        """Call `enter` if there is a place; after `close` nothing enters any more.

        Raises InvalidRequest, QueueFull or EngineStopped.
        """
        with self._lock:
            if self._closed_because:
                raise EngineStopped(self._closed_because)
            if request.request_id in self._live:
                raise InvalidRequest(
                    f"there is a request {request.request_id} already", param="request_id"
                )
            if len(self._live) >= self._limits.max_requests:
                raise QueueFull(
                    f"{len(self._live)} requests are running or waiting; try again later",
                    retry_after_s=self._retry_after_s(),
                )
            self._live.add(request.request_id)
            enter()

    def ended(self, request: Request) -> None:
        now = self._clock()
        with self._lock:
            self._live.discard(request.request_id)
            if self._last_end_s is not None:
                newest = now - self._last_end_s
                self._seconds_per_request += _NEWEST * (newest - self._seconds_per_request)
            self._last_end_s = now

    def close(self, reason: str) -> None:
        """Admit nothing from now on; the first reason stands."""
        with self._lock:
            self._closed_because = self._closed_because or reason

    @property
    def closed_because(self) -> str:
        """Empty while the door is open."""
        return self._closed_because

    @property
    def num_live(self) -> int:
        return len(self._live)

    def _retry_after_s(self) -> float:
        """About when the next place becomes free: requests have been ending at this interval."""
        least, most = _RETRY_AFTER_S
        return min(max(self._seconds_per_request, least), most)


def _check(request: Request, limits: IntakeLimits) -> None:
    prompt, sampling = request.prompt_token_ids, request.sampling
    if not prompt:
        raise InvalidRequest("the prompt has no tokens", param="prompt")
    if min(prompt) < 0 or max(prompt) >= limits.vocab_size:
        raise InvalidRequest(
            f"prompt tokens must be between 0 and {limits.vocab_size - 1}", param="prompt"
        )
    room = limits.max_request_tokens - len(prompt)
    if room < max(1, sampling.min_tokens):
        raise PromptTooLong(
            f"a request may have {limits.max_request_tokens} tokens in all; the prompt has "
            f"{len(prompt)} and the output needs at least {max(1, sampling.min_tokens)}",
            param="prompt",
        )
    if sampling.max_tokens is not None and sampling.min_tokens > sampling.max_tokens:
        raise InvalidRequest("min_tokens is above max_tokens", param="min_tokens")
    if not 0 <= request.num_shared_prefix_tokens <= len(prompt):
        raise InvalidRequest(
            "the shared prefix is longer than the prompt", param="shared_prefix_tokens"
        )
