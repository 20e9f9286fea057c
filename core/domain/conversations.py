"""Conversations: questions that follow each other, and the answers they got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Conversation:
    """Belongs to one subject of one tenant. The title is the first question unless one is given."""

    conversation_id: str
    title: str
    created_at: datetime
    num_answers: int
