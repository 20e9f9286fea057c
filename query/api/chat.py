"""/v1/chat/completions and /v1/models: any OpenAI client is a client of the documents.

`rag` and `rag/<collection>` answer from documents; any other model is the configured language
model's own, passed through.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from core.domain.access import Principal
from core.errors import InvalidInput, NotFound, PinciteError
from core.ids import new_answer_id
from core.ports.chat_proxy import ChatProxy
from query.answers.writing.prompting import cache_salt
from query.api.answer_run import AnswerRun
from query.api.chat_projection import DONE, ChatProjection, sse
from query.api.chat_questions import RAG_MODEL, chat_question, is_rag_model, rag_model
from query.api.schemas.chat import ChatRequest, Model, ModelList
from query.http.auth import Searcher, TheServices
from query.http.errors import problem_of_event, request_id_of, status_of_code
from query.http.event_stream import FinalEvent, LiveEvents, cancel_when_the_client_leaves
from query.http.openai_errors import openai_error
from query.http.slots import Slots
from query.http.worker_events import Event, one_error_group
from query.retrieval.condensation import condense
from query.services import Asked, Services

router = APIRouter(prefix="/v1", tags=["chat"])

_OWNER = "pincite"


class UnknownModel(NotFound):
    code = "model_not_found"


@router.get("/models")
async def list_models(principal: Searcher, services: TheServices) -> ModelList:
    """`rag`, one for each collection that the key may see, and the language model's own."""
    created = int(services.clock.now().timestamp())
    names = await anyio.to_thread.run_sync(partial(_collections, services, principal))
    own = [RAG_MODEL, *(rag_model(name) for name in names)]
    models = [Model(id=name, created=created, owned_by=_OWNER) for name in own]
    return ModelList(data=[*models, *await _generator_models(services)])


@router.get("/models/{model:path}")
async def show_model(model: str, principal: Searcher, services: TheServices) -> Model:
    for found in (await list_models(principal, services)).data:
        if found.id == model:
            return found
    raise UnknownModel(f"there is no model '{model}'", param="model")


@router.post("/chat/completions", response_class=Response)
async def create_chat_completion(
    asked: ChatRequest, request: Request, principal: Searcher, services: TheServices
) -> Response:
    """The last user message is answered from the documents, with annotations of type
    `url_citation` whose URL opens the quoted page; earlier turns make follow-ups understood."""
    if not is_rag_model(asked.model):
        return await _forward(await request.json(), principal, services)
    question = chat_question(asked)
    max_chars = services.settings.answer.max_question_chars
    if len(question.text) > max_chars:
        raise InvalidInput(f"the question is longer than {max_chars} characters", param="messages")
    await _require_collections(question.collections, principal, services)
    run = AnswerRun(
        services,
        principal,
        Asked(
            answer_id=new_answer_id(),
            question=question.text,
            collections=question.collections,
            document_ids=tuple(asked.pincite.document_ids),
            trace_id=request_id_of(request),
            mode=asked.pincite.mode,
            max_tokens=asked.max_completion_tokens or asked.max_tokens,
            history=question.history,
            standalone=condense(question.text, question.history).standalone,
        ),
        request.app.state.running_answers,
    )
    return _respond(asked, request, services, run)


def _respond(asked: ChatRequest, request: Request, services: Services, run: AnswerRun) -> Response:
    options = asked.stream_options
    projection = ChatProjection(
        model=asked.model,
        created=int(services.clock.now().timestamp()),
        base_url=(services.settings.api.public_url or str(request.base_url)).rstrip("/"),
        includes_usage=options is not None and options.include_usage,
        includes_answer=asked.pincite.include_answer,
    )
    slots: Slots = request.app.state.answer_slots
    if asked.stream:
        return LiveEvents(
            run.events,
            slots,
            runs_on=False,
            heartbeat_s=services.settings.api.heartbeat_s,
            encode=_Chunks(projection),
        )
    conclude = partial(_conclude, projection, request_id_of(request))
    return FinalEvent(run.events, slots, runs_on=False, conclude=conclude)


class _Chunks:
    """Events as server-sent chat chunks, `[DONE]` at the end."""

    def __init__(self, projection: ChatProjection) -> None:
        self._projection = projection

    def __call__(self, event: Event) -> bytes:
        if event["type"] == "error":
            status, code = status_of_code(event["code"]), event["code"]
            return sse(openai_error(status, code, event["message"], hint=event.get("hint"))) + DONE
        chunks = b"".join(map(sse, self._projection.chunks(event)))
        return chunks + DONE if event["type"] == "answer.completed" else chunks


def _conclude(projection: ChatProjection, request_id: str, last: Event) -> Response:
    if last["type"] == "answer.completed":
        return JSONResponse(projection.completion(last["answer"]))
    return problem_of_event(last, request_id)


async def _require_collections(
    names: tuple[str, ...], principal: Principal, services: Services
) -> None:
    """A collection that is not there, or not for this key, is a model that does not exist."""
    if not names:
        return
    known = await anyio.to_thread.run_sync(partial(_collections, services, principal))
    for name in names:
        if name not in known:
            raise UnknownModel(f"there is no model '{rag_model(name)}'", param="model")


def _collections(services: Services, principal: Principal) -> list[str]:
    with services.catalog.snapshot(principal) as snapshot:
        return [name for name, _ in snapshot.collections()]


async def _generator_models(services: Services) -> list[Model]:
    """None while the language model is away: the documents can be asked without it."""
    if services.chat_proxy is None:
        return []
    try:
        return [Model.model_validate(entry) for entry in await services.chat_proxy.models()]
    except (PinciteError, ValueError):
        return []


async def _forward(body: dict[str, Any], principal: Principal, services: Services) -> Response:
    if services.chat_proxy is None:
        raise UnknownModel(f"there is no model '{body['model']}'", param="model")
    salt = cache_salt(f"{principal.tenant_id}\n{principal.subject}", services.settings)
    return _Forwarded(services.chat_proxy, body, salt)


class _Forwarded(Response):
    """The language model's own answer, byte for byte, errors included. A client that leaves ends
    the generation at once, also while the model has not said anything."""

    def __init__(self, proxy: ChatProxy, body: dict[str, Any], cache_salt: str) -> None:
        super().__init__()
        self._proxy = proxy
        self._body = body
        self._cache_salt = cache_salt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        async with one_error_group() as group:
            group.start_soon(cancel_when_the_client_leaves, receive, group.cancel_scope)
            async with self._proxy.complete(self._body, cache_salt=self._cache_salt) as found:
                response = StreamingResponse(
                    found.body, status_code=found.status, headers=found.headers
                )
                # Not called as a whole: that would listen for the client's leaving a second time.
                await response.stream_response(send)
            group.cancel_scope.cancel()
