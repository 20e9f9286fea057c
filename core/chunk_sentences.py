"""Chunks cut into what can be quoted: sentences, and the rows of tables.

The same cut when a chunk is indexed (each piece gets a vector of its own) and when it is searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.sentences import sentences

if TYPE_CHECKING:
    from core.domain.pages import Chunk


@dataclass(frozen=True, slots=True)
class ChunkSentence:
    """`text` is `chunk.text[start:end]`, the `ordinal`-th (from 0) of its chunk.

    `heading` is what a reader of the page has above it: the last heading, and for a table's row the
    table's first line.
    """

    ordinal: int
    start: int
    end: int
    text: str
    heading: str

    @property
    def embedded_text(self) -> str:
        """What the embedder reads: the heading says what "the limit" is a limit of."""
        return f"{self.heading}: {self.text}" if self.heading else self.text


def chunk_sentences(chunk: Chunk) -> list[ChunkSentence]:
    """All quotable pieces of a chunk in order, without surrounding white space."""
    bounds = _lines(chunk.text) if chunk.is_table else sentences(chunk.text)
    trimmed = [bound for bound in (_trim(chunk.text, *bound) for bound in bounds) if bound]
    heading = chunk.heading_path[-1] if chunk.heading_path else ""
    first_line = " ".join(chunk.text[slice(*trimmed[0])].split()) if trimmed else ""
    return [
        ChunkSentence(
            ordinal,
            start,
            end,
            chunk.text[start:end],
            f"{heading} {first_line}".strip() if chunk.is_table and ordinal > 0 else heading,
        )
        for ordinal, (start, end) in enumerate(trimmed)
    ]


def _lines(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        found.append((start, start + len(line)))
        start += len(line)
    return found


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
