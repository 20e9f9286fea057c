"""/v1/conversations: threads of questions and answers, private to who began them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from core.domain.conversations import Conversation as Thread
from query.api.audit import write_audit
from query.api.schemas.answers import Answer, Conversation, ConversationRequest
from query.api.schemas.base import Listing
from query.http.auth import Searcher, TheServices
from query.http.errors import request_id_of

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])

_MAX_TURNS = 200
_Limit = Annotated[int, Query(ge=1, le=200)]


@router.post("", status_code=201)
def begin(
    asked: ConversationRequest, request: Request, principal: Searcher, services: TheServices
) -> Conversation:
    """An empty conversation. Ask with its id as `conversation_id`."""
    made = services.catalog.conversations.create(principal, " ".join(asked.title.split()))
    write_audit(
        services, request_id_of(request), principal, "conversation.add", made.conversation_id
    )
    return _shown(made)


@router.get("")
def list_conversations(
    principal: Searcher, services: TheServices, cursor: str | None = None, limit: _Limit = 50
) -> Listing[Conversation]:
    """The newest first."""
    found, following = services.catalog.conversations.recent(principal, cursor=cursor, limit=limit)
    return Listing(data=list(map(_shown, found)), next_cursor=following)


@router.get("/{conversation_id}")
def show_conversation(
    conversation_id: str, principal: Searcher, services: TheServices
) -> Conversation:
    return _shown(services.catalog.conversations.get(principal, conversation_id))


@router.get("/{conversation_id}/answers", response_model=Listing[Answer])
def list_turns(conversation_id: str, principal: Searcher, services: TheServices) -> Any:
    """The last 200 answers, oldest first, each the object that was sent."""
    turns = services.catalog.conversations.turns(principal, conversation_id, limit=_MAX_TURNS)
    return {"data": turns, "next_cursor": None}


@router.delete("/{conversation_id}", status_code=204)
def delete_conversation(
    conversation_id: str, request: Request, principal: Searcher, services: TheServices
) -> Response:
    """With every word of its answers."""
    services.catalog.conversations.delete(principal, conversation_id)
    write_audit(services, request_id_of(request), principal, "conversation.delete", conversation_id)
    return Response(status_code=204)


def _shown(thread: Thread) -> Conversation:
    return Conversation(
        id=thread.conversation_id,
        title=thread.title,
        created_at=thread.created_at.isoformat(),
        num_answers=thread.num_answers,
    )
