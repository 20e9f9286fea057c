"""Scheduler: continuous batching and chunked prefill under one rule.

Every request has `num_computed_tokens < num_tokens`; a step hands out a budget of tokens to close
that gap. There are no phases: a decode is a gap of one, a prefill a larger one, a preempted request
one that has grown again (the rule is vLLM v1's). One step of the engine is

    plan = scheduler.schedule()
    output = runner.run(plan)
    for request, token_id in scheduler.complete(plan, output): ...

Prefills never wait for blocks: a request is admitted only with blocks for its whole prompt (vLLM
#21793). Decodes take a block at a time, and where none is left the cheapest request gives way, to
be computed again later from what the prefix cache kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cache.integrity import check_integrity
from engine.errors import CacheCorrupted, InvalidRequest, PromptTooLong, QueueFull
from engine.request import FinishReason, RequestStatus
from engine.scheduling.preemption import admission_headroom, choose_victim
from engine.scheduling.step_budget import StepBudget
from engine.scheduling.waiting_queue import AdmissionRate, WaitingQueue
from engine.step import StepPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.cache.sequence_blocks import SequenceBlocks
    from engine.config import EngineConfig
    from engine.request import Request
    from engine.step import StepOutput


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """
    max_waiting: requests here at once beyond `max_num_seqs`.
    max_overtakes: how many later requests may be admitted past one that does not fit; then nothing
        passes it any more, so that it cannot starve. A step looks past as many at most.
    growth_tokens: tokens for which each running request keeps room when another is admitted.
    continuous: False admits only into an empty engine and waits for the whole batch (static
        batching, for comparison).
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    max_waiting: int = 64
    max_overtakes: int = 8
    growth_tokens: int = 16
    continuous: bool = True

    @classmethod
    def from_config(cls, config: EngineConfig, max_model_len: int) -> SchedulerLimits:
        """`max_model_len`: as resolved when the model was loaded."""
        return cls(
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            max_model_len=max_model_len,
            max_waiting=config.max_waiting,
        )


class Scheduler:
    """Owned by the engine's thread; nothing here is thread-safe. `clock`: monotonic seconds.

    num_preemptions: so far. num_recomputed_tokens: tokens that were computed before, were lost by
    preemption and not found in the prefix cache again.
    """

    def __init__(
        self,
        limits: SchedulerLimits,
        blocks: SequenceBlocks,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.num_preemptions = 0
        self.num_recomputed_tokens = 0
        self._blocks = blocks
        self._clock = clock
        self._requests: dict[str, Request] = {}
        self._running: list[Request] = []  # by admission
        self._waiting = WaitingQueue()
        self._lost_tokens: dict[str, int] = {}  # computed when preempted, by request id
        self._rate = AdmissionRate()

    # ------------------------------------------------------------------------- one step

    def schedule(self) -> StepPlan | None:
        """Choose the tokens of the next step; None when there is no request. A plan that never
        reaches `complete` (its step failed) changes nothing: the next one starts where it did."""
        step = StepBudget(self.limits.max_num_batched_tokens)
        self._make_room()
        for request in sorted(self._running, key=_is_prefilling):
            self._blocks.grow(request)
            step.give(request)
        self._admit(step)
        if not step.sequences:
            return None
        return StepPlan(tuple(step.sequences), self._blocks.copies)

    def complete(self, plan: StepPlan, output: StepOutput) -> list[tuple[Request, int]]:
        """Take in what the step computed. Returns each request that got a token, with the token,
        which is already among its outputs; the caller decides whether that was the last.

        Requests that were aborted or finished meanwhile are passed over, their tokens dropped.
        """
        self._blocks.finish_copies()
        sampled = []
        for sequence in plan.sequences:
            request, samples = sequence.request, sequence.samples
            if request.status is not RequestStatus.RUNNING:
                continue
            self._blocks.commit(request, sequence.end)
            if samples:
                token_id = output.token_ids[request.request_id]
                request.output_token_ids.append(token_id)
                if request.first_token_s is None:
                    request.first_token_s = self._clock()
                sampled.append((request, token_id))
        return sampled

    def _make_room(self) -> None:
        """Preempt until every running request can grow. The last one always can: it was refused at
        once if the pool could not hold it. What a victim leaves is less than what it would need to
        come back, so that it does not in the same step."""
        while sum(map(self._blocks.num_blocks_short, self._running)) > self._blocks.pool.num_free:
            self.preempt(choose_victim(reversed(self._running), self._blocks))

    def _admit(self, step: StepBudget) -> None:
        """Start waiting requests while there are tokens, seats and blocks. One that does not fit is
        passed by, but not for ever, and a step does not look far behind those that do not fit."""
        if self._running and not self.limits.continuous:
            return
        passed_by: list[Request] = []
        for request in self._waiting:
            if len(self._running) == self.limits.max_num_seqs:
                return
            if step.num_left == 0 and self.limits.continuous:
                return
            if self._blocks.admit(request, headroom=self._headroom(request)):
                self._start(request)
                step.give(request)
                for earlier in passed_by:
                    self._waiting.overtake(earlier)
            else:
                passed_by.append(request)
            if len(passed_by) == self.limits.max_overtakes or any(map(self._is_stuck, passed_by)):
                return

    def _headroom(self, request: Request) -> int:
        growth_tokens = self.limits.growth_tokens
        return admission_headroom(request, len(self._running), growth_tokens, self._blocks)

    def _is_stuck(self, request: Request) -> bool:
        """Overtaken as often as may be: nothing passes it until it fits."""
        return self._waiting.num_overtaken(request) >= self.limits.max_overtakes

    def _start(self, request: Request) -> None:
        self._waiting.remove(request)
        self._running.append(request)
        request.status = RequestStatus.RUNNING
        lost = self._lost_tokens.pop(request.request_id, 0)
        self.num_recomputed_tokens += max(0, lost - request.num_computed_tokens)
        now_s = self._clock()
        self._rate.admitted(now_s)
        if request.scheduled_s is None:
            request.scheduled_s = now_s

    # ----------------------------------------------------------------- requests come and go

    def add(self, request: Request) -> None:
        """Queue a request.

        Raises InvalidRequest (no prompt, no room for output, or an id in use), PromptTooLong (it
        can never fit, not even alone) or QueueFull.
        """
        if not request.prompt_token_ids:
            raise InvalidRequest("the prompt has no tokens", param="prompt")
        if request.max_output_tokens < 1:
            raise InvalidRequest("max_output_tokens must be at least 1", param="max_tokens")
        if request.request_id in self._requests:
            raise InvalidRequest("a request with this id is running", param="request_id")
        self._check_length(request)
        if len(self._requests) >= self.limits.max_num_seqs + self.limits.max_waiting:
            retry_after_s = self._rate.refused(self._clock())
            raise QueueFull("too many requests wait already", retry_after_s=retry_after_s)
        self._requests[request.request_id] = request
        self._waiting.add(request)

    def abort(self, request_id: str) -> Request | None:
        """End a request wherever it is; None if it is not here (any more). If it is in the step
        that runs now, the step's result for it is dropped."""
        request = self._requests.get(request_id)
        if request is not None:
            self.finish(request, FinishReason.ABORT)
        return request

    def finish(self, request: Request, reason: FinishReason) -> None:
        """End a request and let go of its blocks. Nothing happens if it has ended already."""
        if self._requests.get(request.request_id) is not request:
            return
        del self._requests[request.request_id]
        if request.status is RequestStatus.RUNNING:
            self._running.remove(request)
            self._blocks.free(request)
        else:
            self._waiting.remove(request)
            self._lost_tokens.pop(request.request_id, None)
        request.status = RequestStatus.FINISHED
        request.finish_reason = reason

    def preempt(self, request: Request) -> None:
        """Send a running request back to the queue with its output. Its full blocks stay cached
        while there is room; what it computes in the step that runs now is dropped."""
        self._running.remove(request)
        self._lost_tokens[request.request_id] = request.num_computed_tokens
        self._blocks.free(request)
        request.status = RequestStatus.PREEMPTED
        request.num_preemptions += 1
        self.num_preemptions += 1
        self._waiting.add(request)

    def _check_length(self, request: Request) -> None:
        wanted = request.num_prompt_tokens + request.max_output_tokens
        if wanted > self.max_request_tokens:
            raise PromptTooLong(
                f"{request.num_prompt_tokens} prompt tokens and up to {request.max_output_tokens} "
                f"of output are more than the {self.max_request_tokens} that fit",
                param="prompt",
            )

    # ------------------------------------------------------------------------- what is here

    @property
    def max_request_tokens(self) -> int:
        """Prompt + output of the longest request that fits the model and the pool."""
        pool = self._blocks.pool
        return min(self.limits.max_model_len, pool.num_usable * pool.block_size)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Preempted ones included."""
        return len(self._waiting)

    @property
    def requests(self) -> tuple[Request, ...]:
        """All that have not ended, by the time they were added."""
        return tuple(self._requests.values())

    @property
    def num_blocks(self) -> int:
        """Of the pool, without the null block."""
        return self._blocks.pool.num_usable

    @property
    def num_used_blocks(self) -> int:
        """Held by running requests; cached blocks are free."""
        return self._blocks.pool.num_referenced

    @property
    def prefix_query_tokens(self) -> int:
        return self._blocks.prefix_query_tokens

    @property
    def prefix_hit_tokens(self) -> int:
        return self._blocks.prefix_hit_tokens

    def check_integrity(self) -> None:
        """Raises CacheCorrupted if blocks, tables or queues do not add up. Cheap enough to be run
        whenever the engine has nothing to do."""
        check_integrity(self._blocks, self._requests.values())
        waiting = list(self._waiting)
        here = {id(request) for request in [*self._running, *waiting]}
        if not len(here) == len(self._running) + len(waiting) == len(self._requests):
            raise CacheCorrupted("a request is in two queues, or in none")
        if any(request.block_table for request in waiting):
            raise CacheCorrupted("a waiting request holds blocks")


def _is_prefilling(request: Request) -> bool:
    return request.num_uncomputed_tokens > 1
