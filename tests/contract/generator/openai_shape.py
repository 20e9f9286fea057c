"""A scripted server that speaks OpenAI's chat completions as our engine does, over a fake model:
it writes the last message's last line again."""

from __future__ import annotations

from typing import Any

from core.domain.generation import ChatMessage
from tests.fakes.generator import render, tokens
from tests.scripted_server import Connection, Received

MODEL = "scripted"
WINDOW = 512
CAPABILITIES = ["cache_salt", "tokenize"]


def models(**ours: Any) -> dict[str, Any]:
    one: dict[str, Any] = {"id": MODEL, "object": "model", "max_model_len": WINDOW}
    one["pincite"] = {"fingerprint": "scripted-1", "capabilities": CAPABILITIES, **ours}
    return {"object": "list", "data": [one]}


def respond(request: Received, connection: Connection) -> None:
    """Everything that the port needs."""
    if request.path == "/v1/models":
        connection.answer(200, models())
    elif request.path == "/tokenize":
        count = num_tokens(
            request.body["messages"], opens_answer=request.body["add_generation_prompt"]
        )
        connection.answer(200, {"count": count, "max_model_len": WINDOW, "tokens": [0] * count})
    elif request.path == "/v1/chat/completions":
        complete(request, connection)
    else:
        connection.answer(404, {"error": {"message": "no such path", "code": "not_found"}})


def num_tokens(messages: list[dict[str, str]], *, opens_answer: bool) -> int:
    typed = [ChatMessage(m["role"], m["content"]) for m in messages]  # type: ignore[arg-type]
    return len(tokens(render(typed, opens_answer=opens_answer)))


def complete(request: Received, connection: Connection) -> None:
    body = request.body
    prompt = num_tokens(body["messages"], opens_answer=True)
    if prompt + body["max_tokens"] > WINDOW:
        error = {"message": "too long", "type": "invalid_request_error", "code": "prompt_too_long"}
        connection.answer(400, {"error": error})
        return
    pieces = tokens(body["messages"][-1]["content"].rpartition("\n")[2])
    connection.begin_events()
    connection.event(chunk({"role": "assistant", "content": ""}))
    for piece in pieces[: body["max_tokens"]]:
        connection.event(chunk({"content": piece}))
    is_cut = len(pieces) > body["max_tokens"]
    connection.event(chunk({}, "length" if is_cut else "stop"))
    count = min(len(pieces), body["max_tokens"])
    connection.event(usage(prompt, count))
    connection.event("[DONE]")


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    told = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"object": "chat.completion.chunk", "choices": [], "usage": told}
