"""What goes in front of a chunk where it is embedded and indexed: title > heading > heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.chunking.cutting import cut_text
from ingest.layout.paragraphs import text_key

if TYPE_CHECKING:
    from ingest.chunking.cutting import Budget

_SEPARATOR = " > "


class Prefixes:
    """Prefixes of one document, of at most `max_tokens` each: the right-most headings are kept."""

    def __init__(self, title: str, max_tokens: int, budget: Budget) -> None:
        self._title = title
        self._max_tokens = max_tokens
        self._budget = budget
        self._made: dict[tuple[str, ...], str] = {}
        self._reserves: dict[tuple[str, ...], int] = {}

    def of(self, path: tuple[str, ...]) -> str:
        """The prefix under these headings (outermost first); empty when there is no room."""
        found = self._made.get(path)
        if found is None:
            found = self._made[path] = self._make(path)
        return found

    def reserve(self, path: tuple[str, ...]) -> int:
        """Tokens of the longest prefix that a chunk under this path may get: headings inside the
        chunk are left out of it, which may make room for the title."""
        found = self._reserves.get(path)
        if found is None:
            found = max(self._count(self.of(path[:num])) for num in range(len(path) + 1))
            self._reserves[path] = found
        return found

    def _make(self, path: tuple[str, ...]) -> str:
        parts = [self._title, *path]
        if path and text_key(path[0]) == text_key(self._title):
            parts = list(path)
        parts = [part for part in parts if part]
        while len(parts) > 1 and self._count(_SEPARATOR.join(parts)) > self._max_tokens:
            parts.pop(0)
        prefix = _SEPARATOR.join(parts)
        if self._count(prefix) > self._max_tokens:
            bounds = cut_text(prefix, max(1, self._max_tokens), self._budget)
            prefix = prefix[slice(*bounds[0])] if bounds and self._max_tokens else ""
        return prefix

    def _count(self, text: str) -> int:
        return self._budget.count(text) if text else 0
