"""Conversations in the catalog: private to the subject that began them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from core.domain.access import Principal
    from core.domain.conversations import Conversation


class ConversationCatalog(Protocol):
    """Raises NotFound for another tenant's or subject's conversation, as for none."""

    def create(self, principal: Principal, title: str = "") -> Conversation: ...

    def get(self, principal: Principal, conversation_id: str) -> Conversation: ...

    def recent(
        self, principal: Principal, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Conversation], str | None]:
        """The newest first, and the cursor of the next page."""

    def turns(
        self, principal: Principal, conversation_id: str, *, limit: int
    ) -> list[dict[str, Any]]:
        """The last `limit` answers as stored (each with its question), oldest first."""

    def delete(self, principal: Principal, conversation_id: str) -> None:
        """The conversation and every word of its answers; what they cost stays on the books."""
