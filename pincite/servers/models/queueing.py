"""What waits for the model: two levels, questions before passages, cut into batches.

A question waits for at most the batch that is running, so passages go in batches of a few chunks.
After several batches of questions in a row one of passages is let through, so that a busy day of
questions slows ingestion down but never stops it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import Overloaded
from pincite.servers.models.errors import BackendFailed

_MAX_QUESTION_BATCHES_IN_A_ROW = 8
_MAX_RETRY_AFTER_S = 30.0


class Priority(StrEnum):
    """What the header `X-Pincite-Priority` says."""

    QUESTION = "question"  # somebody waits
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class Limits:
    """Args: texts that may wait on each level, texts in one batch of each, and padded tokens in
    one batch of either."""

    max_waiting: int = 512
    max_batch_questions: int = 64
    max_batch_passages: int = 8
    max_batch_tokens: int = 2048


@dataclass(eq=False, slots=True)
class EmbedJob:
    """One request: its texts with their lengths, and where the vectors go."""

    texts: Sequence[str]
    num_tokens: Sequence[int]
    priority: Priority
    prompt_name: str | None
    future: Future[list[list[float]]] = field(default_factory=Future)
    is_abandoned: bool = False
    _vectors: dict[int, list[float]] = field(default_factory=dict)

    def abandon(self) -> None:
        """Nobody waits any more: what has not begun is dropped."""
        self.is_abandoned = True

    def receive(self, position: int, vector: list[float]) -> None:
        """One text's vector; the last one completes the future."""
        self._vectors[position] = vector
        if len(self._vectors) == len(self.texts) and not self.future.done():
            self.future.set_result([self._vectors[i] for i in range(len(self.texts))])

    def fail(self, error: Exception) -> None:
        self.is_abandoned = True
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(frozen=True, slots=True)
class BatchItem:
    job: EmbedJob
    position: int

    @property
    def text(self) -> str:
        return self.job.texts[self.position]

    @property
    def num_tokens(self) -> int:
        return self.job.num_tokens[self.position]


class WorkQueue:
    """Filled by request handlers, emptied by the model's owner. Safe in threads."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._changed = threading.Condition()
        self._waiting: dict[Priority, deque[BatchItem]] = {level: deque() for level in Priority}
        self._num_question_batches = 0
        self._tokens_per_s = 0.0
        self._is_closed = False

    def put(self, job: EmbedJob) -> None:
        """Let a request wait, longest texts first, so that a batch pads little.

        Raises Overloaded when too much waits on its level, BackendFailed after `close`.
        """
        order = sorted(range(len(job.texts)), key=lambda i: -job.num_tokens[i])
        with self._changed:
            if self._is_closed:
                raise BackendFailed("the model server is stopping")
            level = self._waiting[job.priority]
            if len(level) + len(order) > self.limits.max_waiting:
                raise Overloaded(
                    f"too many texts wait ({job.priority})", retry_after_s=self._time_to_empty()
                )
            level.extend(BatchItem(job, position) for position in order)
            self._changed.notify()

    def take(self, wait_s: float | None = None) -> list[BatchItem] | None:
        """The next batch, of one level and one prompt; waits for it, at most `wait_s`, after which
        there is nothing in it. None after `close`."""
        with self._changed:
            while True:
                if self._is_closed:
                    return None
                batch = self._next_batch()
                if batch:
                    return batch
                if not self._changed.wait(wait_s):
                    return []

    def depth(self, priority: Priority) -> int:
        """Texts that wait, those that nobody waits for included until their turn."""
        with self._changed:
            return len(self._waiting[priority])

    def record_speed(self, num_tokens: int, seconds: float) -> None:
        """What one batch took, for `Retry-After`; a moving average."""
        if seconds > 0:
            with self._changed:
                speed = num_tokens / seconds
                before = self._tokens_per_s or speed
                self._tokens_per_s = 0.8 * before + 0.2 * speed

    def close(self) -> None:
        """Fail what waits and let `take` return None."""
        with self._changed:
            self._is_closed = True
            jobs = {item.job for level in self._waiting.values() for item in level}
            for level in self._waiting.values():
                level.clear()
            self._changed.notify_all()
        for job in jobs:
            job.fail(BackendFailed("the model server is stopping"))

    def _next_batch(self) -> list[BatchItem]:
        for level in self._waiting.values():
            while level and level[0].job.is_abandoned:
                level.popleft()
        questions, passages = self._waiting[Priority.QUESTION], self._waiting[Priority.PASSAGE]
        is_passages_turn = self._num_question_batches >= _MAX_QUESTION_BATCHES_IN_A_ROW
        if questions and not (passages and is_passages_turn):
            self._num_question_batches += 1
            return self._cut(questions, self.limits.max_batch_questions)
        self._num_question_batches = 0
        return self._cut(passages, self.limits.max_batch_passages)

    def _cut(self, level: deque[BatchItem], max_texts: int) -> list[BatchItem]:
        batch: list[BatchItem] = []
        longest = 0
        while level and len(batch) < max_texts:
            item = level[0]
            if item.job.is_abandoned:
                level.popleft()
                continue
            longest = max(longest, item.num_tokens)
            if batch and (
                longest * (len(batch) + 1) > self.limits.max_batch_tokens
                or item.job.prompt_name != batch[0].job.prompt_name
            ):
                break
            batch.append(level.popleft())
        return batch

    def _time_to_empty(self) -> float:
        num_tokens = sum(
            item.num_tokens for level in self._waiting.values() for item in _living(level)
        )
        seconds = num_tokens / self._tokens_per_s if self._tokens_per_s else 1.0
        return min(_MAX_RETRY_AFTER_S, max(1.0, seconds))


def _living(items: Iterable[BatchItem]) -> Iterable[BatchItem]:
    return (item for item in items if not item.job.is_abandoned)
