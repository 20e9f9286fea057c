"""The quotable pieces of a passage. Knows nothing of ranking."""

from __future__ import annotations

from dataclasses import dataclass

from core.chunk_sentences import chunk_sentences
from core.domain.search import Passage


@dataclass(frozen=True, slots=True)
class Sentence:
    """`passage.chunk.text[start:end]`; the `ordinal`-th (from 0) of its passage.

    `heading` is what a reader of the page has above it: the last heading, and for a table's row the
    table's first line.
    """

    passage: Passage
    ordinal: int
    start: int
    end: int
    heading: str

    @property
    def text(self) -> str:
        return self.passage.chunk.text[self.start : self.end]


def sentences_of(passage: Passage) -> list[Sentence]:
    """All quotable pieces of a passage in order (core.chunk_sentences)."""
    return [
        Sentence(passage, piece.ordinal, piece.start, piece.end, piece.heading)
        for piece in chunk_sentences(passage.chunk)
    ]
