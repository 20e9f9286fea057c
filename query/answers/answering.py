"""Where answers are asked for: as typed events, or as the JSON objects that the API sends."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from core.domain.access import Principal, Scope
from core.errors import InvalidInput
from core.ids import new_answer_id
from query.answers.deps import AnswerDeps
from query.answers.events import Event
from query.answers.walk import Walk
from query.services import Asked

__all__ = ["AnswerDeps", "Answering", "answer"]


def answer(principal: Principal, asked: Asked, deps: AnswerDeps) -> Generator[Event, None, None]:
    """Answer a question as a stream of events; the last is `answer.completed` or `error`.

    The answer and its events are stored before the last event is given out, exactly as they are
    sent. Errors on the way become an `error` event and a stored answer of status `error`; an
    `error` that comes from the catalog itself is not stored.

    Raises (before the first event) NotPermitted without the scope `search`, InvalidInput for an
    empty or too long question.
    """
    principal.require(Scope.SEARCH)
    limit = deps.settings.answer.max_question_chars
    if not asked.question.strip():
        raise InvalidInput("the question is empty")
    if max(len(asked.question), len(asked.standalone)) > limit:
        raise InvalidInput(f"the question is longer than {limit} characters")
    return Walk(
        principal, replace(asked, answer_id=asked.answer_id or new_answer_id()), deps
    ).events()


@dataclass(frozen=True, slots=True)
class Answering:
    """Implements `query.services.AnswerQuestion`: the same walk with events as JSON objects."""

    deps: AnswerDeps

    def __call__(self, principal: Principal, asked: Asked) -> Generator[dict[str, Any], None, None]:
        with closing(answer(principal, asked, self.deps)) as events:
            for event in events:
                yield event.to_json()
