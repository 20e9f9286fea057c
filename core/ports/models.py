"""Models behind HTTP, and counting tokens without loading one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.domain.search import EmbedderInfo


class Embedder(Protocol):
    """Raises ModelsUnavailable, Overloaded; InvalidInput for a text over the token limit."""

    def info(self) -> EmbedderInfo:
        """Cached after the first success."""

    def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit-length vectors, one a text. Served before passages."""

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit-length vectors, one a text."""


class TokenCounter(Protocol):
    """Counts as the embedder's own tokenizer does."""

    def count(self, text: str) -> int:
        """Tokens without special tokens."""

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """(start, end) in code points of each token, special tokens left out."""

    @property
    def num_special_tokens(self) -> int:
        """How many the embedder adds to each text."""
