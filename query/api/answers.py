"""/v1/answers: ask, with events or without; load and replay stored answers."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse

from core.domain.access import Principal
from core.domain.generation import ChatMessage
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import new_answer_id, repeatable_answer_id
from query.answers.writing.prompting import num_recent_turns
from query.api.answer_run import AnswerRun
from query.api.conversation_turns import history_of
from query.api.schemas.answers import Answer, AnswerRequest
from query.http.auth import Searcher, TheServices
from query.http.errors import problem_of_event, request_id_of
from query.http.event_stream import EVENT_STREAM, FinalEvent, LiveEvents, replayed
from query.http.slots import Slots
from query.http.worker_events import Event
from query.retrieval.condensation import condense
from query.services import Asked, Services

router = APIRouter(prefix="/v1/answers", tags=["answers"])

_EVENTS = {EVENT_STREAM: {"schema": {"type": "string", "description": "see docs/api/rest.md"}}}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"model": Answer, "content": _EVENTS, "description": "The answer, or its events"}
}
_REPLAY: dict[int | str, dict[str, Any]] = {
    200: {"content": _EVENTS, "description": "The stored events"},
    204: {"description": "None after that one"},
}
_IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="the same key: the same answer again"),
]
_LastEventId = Annotated[
    int, Header(alias="Last-Event-ID", ge=0, le=1_000_000_000, description="`seq` of the last seen")
]


@router.post("", response_class=Response, responses=_ANSWER)
async def ask(
    asked: AnswerRequest,
    request: Request,
    principal: Searcher,
    services: TheServices,
    idempotency_key: _IdempotencyKey = None,
) -> Response:
    """Answer a question from the documents that the caller may see: one object, or its events as
    they happen (`"stream": true` or `Accept: text/event-stream`).

    `mode` is `extractive` (verbatim quotes), `generative` (written by the configured language
    model, every sentence verified and flagged) or `auto` (written only where that model passed the
    gate, and an unsupported sentence replaced by its quote before it is sent).

    When the client leaves the work stops at once and nothing is stored, unless `background`.
    """
    max_chars = services.settings.answer.max_question_chars
    if len(asked.question) > max_chars:
        raise InvalidInput(f"the question is longer than {max_chars} characters")
    as_events = asked.stream or EVENT_STREAM in request.headers.get("accept", "")
    answer_id = new_answer_id()
    if idempotency_key is not None:
        answer_id, stored = await anyio.to_thread.run_sync(
            partial(_stored, services, principal, idempotency_key, asked.question)
        )
        if stored is not None:
            return await _as_sent(services, principal, stored, as_events=as_events)
    running: set[str] = request.app.state.running_answers
    if answer_id in running:
        raise Conflict(
            "the first request with this Idempotency-Key is still being answered",
            hint="ask again in a moment",
        )
    told = await anyio.to_thread.run_sync(
        partial(_understood, services, principal, asked, answer_id, request_id_of(request))
    )
    run = AnswerRun(services, principal, told, running)
    slots: Slots = request.app.state.answer_slots
    if as_events:
        heartbeat_s = services.settings.api.heartbeat_s
        return LiveEvents(run.events, slots, runs_on=asked.background, heartbeat_s=heartbeat_s)
    return FinalEvent(
        run.events, slots, runs_on=asked.background, conclude=partial(_conclude, request)
    )


@router.get("/{answer_id}", response_class=Response, responses=_ANSWER)
def show_answer(answer_id: str, principal: Searcher, services: TheServices) -> JSONResponse:
    """The same object that was sent; quotes of documents deleted since are gone."""
    return JSONResponse(services.catalog.answers.load(principal, answer_id))


@router.get("/{answer_id}/events", response_class=Response, responses=_REPLAY)
def replay_events(
    answer_id: str,
    principal: Searcher,
    services: TheServices,
    last_event_id: _LastEventId = 0,
) -> Response:
    """The stored events after `Last-Event-ID`, then the end: nothing is waited for. 204 when there
    is none, which tells an EventSource to stop asking."""
    events = services.catalog.answers.events(principal, answer_id, last_event_id)
    return replayed(events) if events else Response(status_code=204)


def _understood(
    services: Services,
    principal: Principal,
    asked: AnswerRequest,
    answer_id: str,
    request_id: str,
) -> Asked:
    """The question with the turns before it. Raises NotFound for a conversation of another."""
    history: tuple[ChatMessage, ...] = ()
    started = services.clock.monotonic()
    if asked.conversation_id is not None:
        conversations = services.catalog.conversations
        num_turns = num_recent_turns(
            conversations.get(principal, asked.conversation_id).num_answers,
            services.settings.answer.max_history_turns,
        )
        turns = conversations.turns(principal, asked.conversation_id, limit=max(1, num_turns))
        history = history_of(turns)
    condensed = condense(asked.question, history)
    return Asked(
        answer_id=answer_id,
        question=asked.question,
        collections=tuple(asked.collections),
        document_ids=tuple(asked.document_ids),
        trace_id=request_id,
        mode=asked.mode,
        max_tokens=asked.max_tokens,
        conversation_id=asked.conversation_id,
        history=history,
        standalone=condensed.standalone,
        condense_ms=(services.clock.monotonic() - started) * 1000,
    )


def _conclude(request: Request, last: Event) -> Response:
    if last["type"] == "answer.completed":
        return JSONResponse(last["answer"])
    return problem_of_event(last, request_id_of(request))


def _stored(
    services: Services, principal: Principal, idempotency_key: str, question: str
) -> tuple[str, dict[str, Any] | None]:
    """(the id for this key, its stored answer). One that ended in an error does not count: the
    request is sent again to get an answer. Raises Conflict for another question."""
    for attempt in itertools.count():
        answer_id = repeatable_answer_id(
            principal.tenant_id, principal.subject, idempotency_key, attempt
        )
        try:
            answer = services.catalog.answers.load(principal, answer_id)
        except NotFound:
            return answer_id, None
        if answer.get("question") != question:
            raise Conflict("this Idempotency-Key was used for another question")
        if answer.get("answer_status") != "error":
            return answer_id, answer
    raise AssertionError("unreachable")


async def _as_sent(
    services: Services, principal: Principal, answer: dict[str, Any], *, as_events: bool
) -> Response:
    if not as_events:
        return JSONResponse(answer)
    return replayed(
        await anyio.to_thread.run_sync(
            partial(services.catalog.answers.events, principal, answer["id"], 0)
        )
    )
