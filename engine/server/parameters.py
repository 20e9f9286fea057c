"""Parameters of OpenAI's requests that we do not honour: refused by name, never silently ignored.

Three kinds. Harmless ones change nothing about the output and are accepted. Known ones that we
cannot honour yet are refused, unless their value asks for nothing (`n: 1`, `tools: []`). Anything
else is a name that neither OpenAI nor we know, most likely a typing error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.server.errors import ApiError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_HARMLESS: Final = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)


def _is_empty(value: Any) -> bool:
    return value in ([], {})


def _is_never(_value: Any) -> bool:
    return False


def _is_any_of(*values: Any) -> Callable[[Any], bool]:
    """Equality that tells `1` from `true`."""
    return lambda value: any(value == known and type(value) is type(known) for known in values)


# name -> whether a value (not null) asks for nothing
_CHAT: Final[Mapping[str, Callable[[Any], bool]]] = {
    "audio": _is_never,
    "function_call": _is_any_of("none"),
    "functions": _is_empty,
    "logit_bias": _is_empty,
    "logprobs": _is_any_of(False),
    "modalities": _is_any_of(["text"]),
    "moderation": _is_never,
    "n": _is_any_of(1),
    "prediction": _is_never,
    "reasoning_effort": _is_any_of("none"),
    "response_format": _is_any_of({"type": "text"}),
    "tool_choice": _is_any_of("none"),
    "tools": _is_empty,
    "top_logprobs": _is_any_of(0),
    "verbosity": _is_any_of("medium"),
    "web_search_options": _is_never,
}
_COMPLETION: Final[Mapping[str, Callable[[Any], bool]]] = {
    "best_of": _is_any_of(1),
    "echo": _is_any_of(False),
    "logit_bias": _is_empty,
    "logprobs": _is_never,  # 0 asks for the chosen token's
    "n": _is_any_of(1),
    "suffix": _is_any_of(""),
}
_TOKENIZE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "chat_template": _is_never,
    "chat_template_kwargs": _is_empty,
    "continue_final_message": _is_any_of(False),
    "mm_processor_kwargs": _is_empty,
    "return_token_strs": _is_any_of(False),
    "tools": _is_empty,
}


def refuse_unsupported(
    body: Mapping[str, Any], supported: Iterable[str], kind: Mapping[str, Callable[[Any], bool]]
) -> None:
    """Check the names of a body. Raises ApiError 400 that names the first one we cannot honour."""
    honoured = frozenset(supported)
    for name, value in body.items():
        if name in honoured or name in _HARMLESS or value is None:
            continue
        neutral = kind.get(name)
        if neutral is None:
            raise invalid(
                f"Unrecognized request argument supplied: {name[:100]}",
                name[:100],
                code="unknown_parameter",
            )
        if not neutral(value):
            raise _unsupported(name)


def refuse_unsupported_chat(body: Mapping[str, Any], supported: Iterable[str]) -> None:
    """Of `/v1/chat/completions`."""
    refuse_unsupported(body, supported, _CHAT)


def refuse_unsupported_completion(body: Mapping[str, Any], supported: Iterable[str]) -> None:
    """Of `/v1/completions`."""
    refuse_unsupported(body, supported, _COMPLETION)


def refuse_unsupported_tokenize(body: Mapping[str, Any], supported: Iterable[str]) -> None:
    """Of `/tokenize`."""
    refuse_unsupported(body, supported, _TOKENIZE)


def _unsupported(name: str) -> ApiError:
    return invalid(
        f"this server does not support '{name}' (or not with this value) yet",
        name,
        code="unsupported_parameter",
    )
