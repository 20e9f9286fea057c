"""Passages cut into what can be quoted: sentences, and the rows of tables.

Knows nothing of ranking.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.domain.search import Passage
from core.sentences import sentences


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
    """All quotable units of a passage in order, without surrounding white space."""
    chunk = passage.chunk
    bounds = _lines(chunk.text) if chunk.is_table else sentences(chunk.text)
    trimmed = [bound for bound in (_trim(chunk.text, *bound) for bound in bounds) if bound]
    heading = chunk.heading_path[-1] if chunk.heading_path else ""
    first_line = " ".join(chunk.text[slice(*trimmed[0])].split()) if trimmed else ""
    return [
        Sentence(
            passage,
            ordinal,
            start,
            end,
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
