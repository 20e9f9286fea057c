"""Engine: one thread owns all state and runs the steps; everybody else sends it messages.

A message is a request to be added, an abort, or the wish to close; they are taken between steps.
With nothing to run the thread waits for the next message.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from engine.cache.blocks import BlockPool
from engine.cache.sequence_blocks import SequenceBlocks
from engine.errors import EngineStopped
from engine.intake import Intake, IntakeLimits
from engine.outputs import EngineStats
from engine.request import Request
from engine.scheduling.scheduler import Scheduler, SchedulerLimits
from engine.step_loop import StepLoop
from engine.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.config import EngineConfig
    from engine.loading import EngineParts
    from engine.outputs import RequestOutput
    from engine.sampling_params import SamplingParams

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Abort:
    request_id: str


@dataclass(frozen=True, slots=True)
class _Close:
    drain: bool


# A transcript is a request to be added.
_Message: TypeAlias = Transcript | _Abort | _Close


class Engine:
    """Public methods are safe in any thread. `clock`: monotonic seconds. `continuous`: false for
    static batching, to compare with."""

    def __init__(
        self,
        parts: EngineParts,
        config: EngineConfig,
        *,
        continuous: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokenizer = parts.tokenizer
        self._pool = BlockPool(parts.num_blocks, config.block_size)
        self._scheduler = _scheduler(self._pool, parts, config, continuous=continuous, clock=clock)
        limits = IntakeLimits(
            vocab_size=parts.model_config.vocab_size,
            max_request_tokens=self._scheduler.max_request_tokens,
            max_requests=config.max_num_seqs + config.max_waiting,
            end_token_ids=parts.tokenizer.eos_token_ids,
        )
        self._intake = Intake(limits, clock)
        self._steps = StepLoop(self._scheduler, parts.runner, clock, self._intake.ended)
        self._inbox: SimpleQueue[_Message] = SimpleQueue()
        self._is_closing = False
        self._thread = threading.Thread(target=self._own, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(  # noqa: PLR0913 - what the contract of the engine has
        self,
        prompt_token_ids: Sequence[int],
        sampling: SamplingParams,
        on_output: Callable[[RequestOutput], None],
        *,
        salt: bytes = b"",
        num_shared_prefix_tokens: int = 0,
        priority: int = 0,
        request_id: str | None = None,
    ) -> str:
        """Queue a request; returns its id. `on_output` is called in the engine's thread with each
        piece of output, of which the last has a finish reason; it must be quick. If it raises, the
        request is dropped.

        Raises InvalidRequest, PromptTooLong, QueueFull or EngineStopped.
        """
        request = Request(
            request_id=request_id or f"req_{uuid.uuid4().hex}",
            prompt_token_ids=list(prompt_token_ids),
            sampling=sampling,
            salt=salt,
            num_shared_prefix_tokens=num_shared_prefix_tokens,
            priority=priority,
        )
        self._intake.prepare(request)
        transcript = Transcript(request, self._tokenizer, on_output)
        self._intake.admit(request, lambda: self._inbox.put(transcript))
        return request.request_id

    def abort(self, request_id: str) -> None:
        """End a request between steps, with FinishReason.ABORT. Nothing happens if it is unknown
        or has ended."""
        self._inbox.put(_Abort(request_id))

    def stats(self) -> EngineStats:
        """Each figure is read by itself, so two may be of different steps."""
        scheduler = self._scheduler
        num_running = scheduler.num_running
        return EngineStats(
            num_running=num_running,
            num_waiting=max(0, self._intake.num_live - num_running),
            num_blocks=self._pool.num_usable,
            num_used_blocks=self._pool.num_referenced,
            num_preemptions=scheduler.num_preemptions,
            prefix_cache_queries=scheduler.prefix_query_tokens,
            prefix_cache_hits=scheduler.prefix_hit_tokens,
            steps_by_tokens=dict(self._steps.steps_by_tokens),
        )

    @property
    def is_ready(self) -> bool:
        """Started, and neither closed nor stopped by failures."""
        return self._thread.is_alive() and not self._intake.closed_because

    def close(self, *, drain: bool = False, timeout_s: float | None = None) -> None:
        """Take no more requests, end those that are there (`drain`: let them finish, else abort
        them) and wait for the thread. May be called again."""
        self._intake.close("the engine is stopping")
        self._inbox.put(_Close(drain))
        if self._thread.ident is None:  # it never ran, and must, to end what was submitted
            self._thread.start()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    # ------------------------------------------------------------------- the owner thread

    def _own(self) -> None:
        try:
            self._loop()
        except Exception as error:  # nobody may be left waiting for a dead thread
            log.exception("the engine has stopped")
            self._intake.close(f"the engine has stopped: {error}")
        finally:
            self._intake.close("the engine has stopped")
            while not self._inbox.empty():
                if isinstance(message := self._inbox.get(), Transcript):
                    self._steps.add(message)
            self._steps.give_up(EngineStopped(self._intake.closed_because))

    def _loop(self) -> None:
        is_idle = False
        while not (self._is_closing and self._steps.is_empty):
            if is_idle:
                self._handle(self._inbox.get())
            self._handle_all()
            was_idle, is_idle = is_idle, not self._steps.step()
            if is_idle and not was_idle:
                self._steps.check_integrity()

    def _handle_all(self) -> None:
        while True:
            try:
                self._handle(self._inbox.get_nowait())
            except Empty:
                return

    def _handle(self, message: _Message) -> None:
        match message:
            case Transcript():
                self._steps.add(message)
            case _Abort(request_id):
                self._steps.abort(request_id)
            case _Close(drain):
                self._is_closing = True
                if not drain:
                    self._steps.abort_all()


def _scheduler(
    pool: BlockPool,
    parts: EngineParts,
    config: EngineConfig,
    *,
    continuous: bool,
    clock: Callable[[], float],
) -> Scheduler:
    blocks = SequenceBlocks(
        pool,
        enable_prefix_caching=config.enable_prefix_caching,
        model_salt=f"{parts.fingerprint} {parts.dtype}".encode(),
    )
    limits = replace(
        SchedulerLimits.from_config(config, parts.max_model_len), continuous=continuous
    )
    return Scheduler(limits, blocks, clock=clock)
