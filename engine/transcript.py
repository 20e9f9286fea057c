"""Transcript: what one request has said so far, and telling its caller."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.outputs import RequestOutput, RequestTimings, RequestUsage
from engine.request import FinishReason
from engine.text.detokenizer import IncrementalDetokenizer
from engine.text.stops import StopMatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.errors import EngineError
    from engine.request import Request
    from engine.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)


class Transcript:
    """Turns a request's tokens into text, sees where the output ends, and tells `on_output`.

    Only the owner thread uses it; `on_output` is called there.
    """

    def __init__(
        self,
        request: Request,
        tokenizer: Tokenizer,
        on_output: Callable[[RequestOutput], None],
    ) -> None:
        sampling = request.sampling
        self.request = request
        self._on_output = on_output
        self._detokenizer = IncrementalDetokenizer(tokenizer, request.prompt_token_ids)
        self._stops = StopMatcher(sampling.stop, sampling.include_stop)
        self._stamps: list[float] = []

    def add(self, token_id: int, now: float) -> tuple[str, FinishReason | None]:
        """Take the token that was just appended to the request's output: the text that may be shown
        now, and why the output ends with it, if it does. An end token has no text."""
        request = self.request
        self._stamps.append(now)
        if request.first_token_s is None:
            request.first_token_s = now
        if token_id in request.end_token_ids:
            return self._rest()[0], FinishReason.STOP
        text, has_stopped = self._show(self._detokenizer.push(token_id))
        if has_stopped:
            return text, FinishReason.STOP
        if len(request.output_token_ids) < request.max_output_tokens:
            return text, None
        rest, has_stopped = self._rest()
        return text + rest, FinishReason.STOP if has_stopped else FinishReason.LENGTH

    def tell(self, text: str, token_ids: tuple[int, ...]) -> bool:
        """Tell the caller a piece; false when its callback raised."""
        return self._call(RequestOutput(self.request.request_id, text, token_ids, self._usage()))

    def tell_end(
        self,
        reason: FinishReason,
        *,
        now: float,
        text: str = "",
        token_ids: tuple[int, ...] = (),
        error: EngineError | None = None,
    ) -> None:
        """Tell the caller the last piece."""
        request = self.request
        timings = RequestTimings(
            queue_s=_since(request.arrival_s, request.scheduled_s),
            first_token_s=_since(request.arrival_s, request.first_token_s),
            total_s=now - request.arrival_s,
            inter_token_s=tuple(after - before for before, after in pairwise(self._stamps)),
        )
        why = f"{error.code}: {error}" if error else ""
        usage = self._usage()
        self._call(RequestOutput(request.request_id, text, token_ids, usage, reason, why, timings))

    def _show(self, text: str) -> tuple[str, bool]:
        """No stop string is looked for in the text of the first `min_tokens` tokens."""
        if len(self.request.output_token_ids) <= self.request.sampling.min_tokens:
            return text, False
        return self._stops.push(text)

    def _rest(self) -> tuple[str, bool]:
        """What was held back: half characters, and what could have become a stop string."""
        text, has_stopped = self._show(self._detokenizer.flush())
        return (text, True) if has_stopped else (text + self._stops.flush(), False)

    def _usage(self) -> RequestUsage:
        request = self.request
        return RequestUsage(
            num_prompt_tokens=request.num_prompt_tokens,
            num_cached_tokens=request.num_cached_tokens,
            num_completion_tokens=len(request.output_token_ids),
        )

    def _call(self, output: RequestOutput) -> bool:
        try:
            self._on_output(output)
        except Exception:  # the caller's code: it may end its own request only
            log.exception("the callback of request %s raised", self.request.request_id)
            return False
        return True


def _since(start: float, end: float | None) -> float | None:
    return None if end is None else end - start
