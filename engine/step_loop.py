"""StepLoop: the requests that run, and one step of them.

    schedule -> run -> postprocess

Whatever goes wrong, each request that was added is told its end exactly once (unless its own
callback raised). Everything here belongs to the engine's owner thread.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from engine.errors import EngineError, EngineStopped, NoTokenAllowed, StepFailed
from engine.request import FinishReason
from engine.step import NO_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.request import Request
    from engine.scheduling.scheduler import Scheduler
    from engine.step import Runner, StepPlan
    from engine.transcript import Transcript

log = logging.getLogger(__name__)

# So many failing steps in a row are no accident of one request: the engine stops.
_MAX_FAILURES = 3
_CHECK_PAUSE = 100  # times what a check took


class StepLoop:
    """`on_end`: told of each request when it has let go of its blocks, before its caller is.

    steps_by_tokens: tokens of a step -> how many steps had so many.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        clock: Callable[[], float],
        on_end: Callable[[Request], None],
    ) -> None:
        self.steps_by_tokens: Counter[int] = Counter()
        self._scheduler = scheduler
        self._runner = runner
        self._clock = clock
        self._on_end = on_end
        self._transcripts: dict[str, Transcript] = {}  # of all requests that have not ended
        self._num_failures = 0  # in a row
        self._next_check_s = 0.0

    def step(self) -> bool:
        """One step; false when there was nothing to do. A step that raises costs its requests.

        Raises EngineStopped when steps keep failing.
        """
        plan: StepPlan | None = None
        try:
            plan = self._scheduler.schedule()
            if plan is None:
                self._expect_no_requests()
                return False
            output = self._runner.run(plan)
            now = self._clock()
            for request, token_id in self._scheduler.complete(plan, output):
                self._postprocess(request, token_id, now)
        except Exception as error:  # the edge of a step: its requests are lost, not the engine
            log.exception("a step failed")
            self._fail(plan, error)
        else:
            self.steps_by_tokens[plan.num_tokens] += 1
            self._num_failures = 0
        return True

    def _postprocess(self, request: Request, token_id: int, now: float) -> None:
        transcript = self._transcripts[request.request_id]
        if token_id == NO_TOKEN:
            request.output_token_ids.pop()
            self._finish_with_error(transcript, NoTokenAllowed("no token may come next"))
            return
        try:
            text, reason = transcript.add(token_id, now)
        except Exception:  # a bug in text handling costs its own request only
            log.exception("the text of request %s failed", request.request_id)
            self._finish_with_error(transcript, StepFailed("the output could not be decoded"))
            return
        if reason is not None:
            self._remove(transcript, reason)
            transcript.tell_end(reason, now=now, text=text, token_ids=(token_id,))
        elif not transcript.tell(text, (token_id,)):
            self._remove(transcript, FinishReason.ABORT)

    # ----------------------------------------------------------------- requests come and go

    def add(self, transcript: Transcript) -> None:
        self._transcripts[transcript.request.request_id] = transcript
        try:
            self._scheduler.add(transcript.request)
        except EngineError as error:
            self._finish_with_error(transcript, error)

    def abort(self, request_id: str) -> None:
        """Nothing happens if there is no such request (any more)."""
        if transcript := self._transcripts.get(request_id):
            self._remove(transcript, FinishReason.ABORT)
            transcript.tell_end(FinishReason.ABORT, now=self._clock())

    def abort_all(self) -> None:
        for request_id in list(self._transcripts):
            self.abort(request_id)

    @property
    def is_empty(self) -> bool:
        return not self._transcripts

    def give_up(self, error: EngineError) -> None:
        """Tell everybody who is left, whatever state the scheduler is in."""
        for transcript in self._transcripts.values():
            self._on_end(transcript.request)
            transcript.tell_end(FinishReason.ERROR, now=self._clock(), error=error)
        self._transcripts.clear()

    def check_integrity(self) -> None:
        """The books of the block pool, but for at most a hundredth of the time: those of 65,000
        blocks take 0.2 s, for which the next request would wait.

        What is wrong is a bug to be logged; requests to come may well be served all the same.
        """
        started = self._clock()
        if started < self._next_check_s:
            return
        try:
            self._scheduler.check_integrity()
        except EngineError:
            log.exception("the block pool is not in order")
        ended = self._clock()
        self._next_check_s = ended + _CHECK_PAUSE * (ended - started)

    def _remove(self, transcript: Transcript, reason: FinishReason) -> None:
        """Free what the request holds. Its caller is told after that, so that whoever sees the end
        sees an engine without the request."""
        self._scheduler.finish(transcript.request, reason)
        del self._transcripts[transcript.request.request_id]
        self._on_end(transcript.request)

    def _finish_with_error(self, transcript: Transcript, error: EngineError) -> None:
        self._remove(transcript, FinishReason.ERROR)
        transcript.tell_end(FinishReason.ERROR, now=self._clock(), error=error)

    # ----------------------------------------------------------------------------- failures

    def _fail(self, plan: StepPlan | None, error: Exception) -> None:
        """End the requests of the step, or all if it was not even planned. The prefix cache is
        sound: what a step did not complete is not in it."""
        self._num_failures += 1
        lost = list(self._transcripts)
        if plan is not None:
            lost = [sequence.request.request_id for sequence in plan.sequences]
        for request_id in lost:
            if transcript := self._transcripts.get(request_id):
                failure = StepFailed(f"the step raised {type(error).__name__}")
                self._finish_with_error(transcript, failure)
        if self._num_failures == _MAX_FAILURES:
            raise EngineStopped(f"{_MAX_FAILURES} steps in a row failed") from error

    def _expect_no_requests(self) -> None:
        """A scheduler that can schedule nobody would leave them waiting for ever."""
        if self._transcripts:
            raise StepFailed("there are requests, and none can be scheduled")
