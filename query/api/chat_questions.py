"""From a chat request to the question in it: pure, and strict about what it cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.domain.generation import ChatMessage
from core.errors import InvalidInput
from query.api.schemas.chat import ChatRequest, Message

RAG_MODEL = "rag"
_PREFIX = f"{RAG_MODEL}/"
_TALK = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """`collections` is empty for all that the key may see."""

    text: str
    history: tuple[ChatMessage, ...]
    collections: tuple[str, ...]


class UnsupportedParameter(InvalidInput):
    """`param` is the field of the request that cannot be honoured."""

    code = "unsupported_parameter"

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message, param=param)


def is_rag_model(model: str) -> bool:
    return model == RAG_MODEL or model.startswith(_PREFIX)


def rag_model(collection: str) -> str:
    """The name under which a collection answers."""
    return _PREFIX + collection


def chat_question(request: ChatRequest) -> ChatQuestion:
    """The last user message as the question, what was said before it as history.

    System and developer messages are not read: how documents are quoted is not up to a prompt.
    Raises InvalidInput without a question at the end, or for content that is not text;
    UnsupportedParameter for what would change the shape of the response.
    """
    _refuse_unsupported(request)
    talk = [message for message in request.messages if message.role in _TALK]
    strange = next((m.role for m in request.messages if m.role in ("tool", "function")), None)
    if strange is not None:
        raise UnsupportedParameter("messages", f"messages of role '{strange}' mean nothing here")
    if not talk or talk[-1].role != "user":
        raise InvalidInput("the last message must be the user's question", param="messages")
    question = _text(talk[-1])
    if not question.strip():
        raise InvalidInput("the question is empty", param="messages")
    return ChatQuestion(question, _history(talk[:-1]), _collections(request))


def _refuse_unsupported(request: ChatRequest) -> None:
    wanted = {
        "n": request.n not in (None, 1),
        "stop": bool(request.stop),
        "logprobs": bool(request.logprobs),
        "tools": bool(request.tools),
        "functions": bool(request.functions),
        "response_format": request.response_format is not None
        and request.response_format.type != "text",
        "modalities": request.modalities not in (None, [], ["text"]),
    }
    for param, is_wanted in wanted.items():
        if is_wanted:
            raise UnsupportedParameter(param, f"'{param}' is not supported by '{request.model}'")


def _history(earlier: Sequence[Message]) -> tuple[ChatMessage, ...]:
    """User and assistant by turns, each turn a pair: what a chat template accepts. Of several
    messages in a row of the same role the last counts; a question without an answer is left out."""
    pairs: list[tuple[str, str]] = []
    question: str | None = None
    for message in earlier:
        text = _text(message)
        if message.role == "user":
            question = text
        elif question is not None:
            pairs.append((question, text))
            question = None
        elif pairs:
            pairs[-1] = (pairs[-1][0], text)
    return tuple(
        message
        for asked, answered in pairs
        for message in (ChatMessage("user", asked), ChatMessage("assistant", answered))
    )


def _text(message: Message) -> str:
    if message.content is None:
        return ""
    if isinstance(message.content, str):
        return message.content
    for part in message.content:
        if part.type != "text":
            raise UnsupportedParameter("messages", f"content of type '{part.type}' is not read")
    return "\n".join(part.text for part in message.content)


def _collections(request: ChatRequest) -> tuple[str, ...]:
    named = tuple(request.pincite.collections)
    if request.model == RAG_MODEL:
        return named
    own = request.model.removeprefix(_PREFIX)
    if not own:
        raise InvalidInput(f"'{_PREFIX}' must be followed by a collection", param="model")
    if named and named != (own,):
        raise InvalidInput(
            "collections are named twice, by the model and by the request", param="pincite"
        )
    return (own,)
