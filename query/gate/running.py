"""Asking a generator the suite's questions, with the product's own prompt, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

import anyio
import anyio.to_thread

from core.domain.generation import GenerationEnd, GenerationRequest, TextPiece
from core.errors import PinciteError
from core.ports.generator import Generator
from core.settings import Settings
from query.answers.writing.prompting import assemble
from query.gate.figures import can_pass, failing, figures_of
from query.gate.judging import Outcome, judge
from query.gate.results import GateResult
from query.gate.suite import GateQuestion, read_questions, suite_version
from query.gate.verifier_check import check_verifier

Progress = Callable[[int, int], None]
"""(questions answered, questions in all)"""


async def run_gate(
    generator: Generator,
    settings: Settings,
    now: datetime,
    *,
    num_at_once: int = 4,
    asks_all: bool = False,
    on_progress: Progress | None = None,
) -> GateResult:
    """Ask, judge and count. Stops as soon as a pass is out of reach, unless `asks_all`.

    Raises what the generator raises (GeneratorUnavailable, Overloaded, TimedOut, InvalidInput): a
    suite that was not answered is no verdict. InternalError when the verifier fails its own check.
    """
    check_verifier()
    info = await anyio.to_thread.run_sync(generator.info)
    questions = read_questions()
    run = _Run(generator, settings, questions, asks_all=asks_all, on_progress=on_progress)
    await run.ask_all(num_at_once)
    outcomes = tuple(run.outcomes[key] for key in sorted(run.outcomes))
    figures = figures_of(outcomes)
    missed = failing(figures)
    is_whole = len(outcomes) == len(questions)
    return GateResult(
        fingerprint=info.fingerprint,
        model=info.model,
        suite_version=suite_version(),
        date=now.isoformat(),
        has_passed=is_whole and not missed,
        num_asked=len(outcomes),
        num_questions=len(questions),
        figures=figures,
        failing=missed,
        outcomes=outcomes,
    )


class _Run:
    """Questions on their way; `outcomes` by question number."""

    def __init__(
        self,
        generator: Generator,
        settings: Settings,
        questions: tuple[GateQuestion, ...],
        *,
        asks_all: bool,
        on_progress: Progress | None,
    ) -> None:
        self._generator = generator
        self._settings = settings
        self._questions = questions
        self._kinds = [question.kind for question in questions]
        self._asks_all = asks_all
        self._on_progress = on_progress
        self._waiting = iter(enumerate(questions))
        self._error: PinciteError | None = None
        self.outcomes: dict[int, Outcome] = {}

    async def ask_all(self, num_at_once: int) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(num_at_once):
                group.start_soon(self._ask_on, group.cancel_scope)
        if self._error is not None:
            raise self._error

    async def _ask_on(self, scope: anyio.CancelScope) -> None:
        """Ask the next question until none is left or nothing is to be won any more."""
        for number, question in self._waiting:
            try:
                text, is_complete = await self._answer(question)
            except PinciteError as error:
                self._error = error
                scope.cancel()
                return
            self.outcomes[number] = judge(question, text, is_complete=is_complete)
            if self._on_progress is not None:
                self._on_progress(len(self.outcomes), len(self._questions))
            if not self._asks_all and not can_pass(list(self.outcomes.values()), self._kinds):
                scope.cancel()
                return

    async def _answer(self, question: GateQuestion) -> tuple[str, bool]:
        """(the whole text, whether the generator stopped by itself)."""
        request = await anyio.to_thread.run_sync(self._request, question)
        pieces: list[str] = []
        is_complete = False
        async with aclosing(self._generator.stream(request)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, TextPiece):
                    pieces.append(event.text)
                elif isinstance(event, GenerationEnd):
                    is_complete = event.finish_reason == "stop"
        return "".join(pieces), is_complete

    def _request(self, question: GateQuestion) -> GenerationRequest:
        prompt = assemble(question.question, question.given, (), self._generator, self._settings)
        return replace(prompt.request, temperature=0.0)
