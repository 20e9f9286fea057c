"""Stored answers as the history of the next question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.domain.generation import ChatMessage

_SAID = frozenset({"answered", "partial", "not_in_documents"})


def history_of(turns: Sequence[Mapping[str, Any]]) -> tuple[ChatMessage, ...]:
    """Question and answer by turns, as sent; those that ended in an error said nothing."""
    return tuple(
        message
        for turn in turns
        if turn.get("answer_status") in _SAID and turn.get("text")
        for message in (
            ChatMessage("user", turn["question"]),
            ChatMessage("assistant", turn["text"]),
        )
    )
