"""Messages and prompts of a body as what the tokenizer takes."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from engine.server.errors import invalid

Prompt: TypeAlias = str | list[int]
MAX_PROMPTS: Final = 64
_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
# What client libraries send back with an assistant's earlier message, as long as it is empty.
_ECHOED: Final = ("annotations", "audio", "function_call", "refusal", "tool_calls")


def chat_messages(messages: list[Any]) -> list[dict[str, Any]]:
    """Role and content of each message, content as one string; a `name` goes to the template, too.

    Raises ApiError 400 that names the message.
    """
    if not messages:
        raise invalid("messages must not be empty", "messages")
    return [_message(entry, f"messages[{number}]") for number, entry in enumerate(messages)]


def completion_prompts(value: Any) -> list[Prompt]:
    """The prompts of a plain completion: a string, token ids, or a list of either.

    Raises ApiError 400.
    """
    prompts: list[Any] = value if _is_batch(value) else [value]
    if len(prompts) > MAX_PROMPTS:
        raise invalid(f"at most {MAX_PROMPTS} prompts in one request", "prompt")
    if not prompts or not all(isinstance(prompt, str) or _is_ids(prompt) for prompt in prompts):
        raise invalid("prompt is a string, a list of token ids, or a list of either", "prompt")
    return prompts


def _is_batch(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(member, str | list) for member in value)


def _is_ids(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(member) is int and 0 <= member < 2**31 for member in value)
    )


def _message(entry: Any, place: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise invalid(f"{place} is not an object", place)
    role = _ROLES.get(entry["role"]) if isinstance(entry.get("role"), str) else None
    if role is None:
        roles = ", ".join(_ROLES)
        raise invalid(f"{place}.role must be one of {roles}", f"{place}.role")
    for name, value in entry.items():
        if name in ("role", "content", "name") or value is None:
            continue
        if name not in _ECHOED or value not in ([], {}, ""):
            raise invalid(
                f"{place}: this server does not support '{name[:100]}'",
                f"{place}.{name[:100]}",
                code="unsupported_parameter",
            )
    message = {"role": role, "content": _content(entry.get("content"), f"{place}.content")}
    if entry.get("name") is not None:
        message["name"] = _text(entry["name"], f"{place}.name")
    return message


def _content(content: Any, place: str) -> str:
    if not isinstance(content, list):
        return _text(content, place)
    texts = []
    for number, part in enumerate(content):
        is_text = (
            isinstance(part, dict) and part.get("type") == "text" and set(part) <= {"type", "text"}
        )
        if not is_text:
            raise invalid(
                f"{place}[{number}]: this server takes parts of type 'text' only",
                f"{place}[{number}]",
                code="unsupported_parameter",
            )
        texts.append(_text(part.get("text"), f"{place}[{number}].text"))
    return "".join(texts)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise invalid(f"{place} must be a string", place)
    return value
