"""Cutting what does not fit: text at sentences, then clauses, then tokens; tables at rows."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import regex

from core.sentences import sentences
from ingest.chunking.units import first_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.ports.models import TokenCounter
    from ingest.chunking.units import Piece, Unit

Bounds = tuple[int, int]

_CLAUSE_END = regex.compile(r"[,;:—–)\]]\s+|[、，；：]|\s\|\s")
_BLANK = regex.compile(r"\s+")
_CHARS_PER_TOKEN = 12
_MIN_ROWS = 3  # of a table whose header is worth repeating


class Budget:
    """Counts tokens as the embedder does, and texts of endless words by their length: many
    tokenizers call a word of any length one unknown token."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    @property
    def num_special_tokens(self) -> int:
        return self._counter.num_special_tokens

    def count(self, text: str) -> int:
        """Tokens without special ones; remembered, since headings and prefixes come back."""
        found = self._known.get(text)
        if found is None:
            found = max(self._counter.count(text), len(text) // _CHARS_PER_TOKEN)
            self._known[text] = found
        return found

    def true_count(self, text: str) -> int:
        """Exactly what the embedder will count, special tokens included."""
        return self._counter.count(text) + self._counter.num_special_tokens

    def offsets(self, text: str) -> list[Bounds]:
        return self._counter.token_offsets(text)


def cut_text(text: str, max_tokens: int, budget: Budget) -> list[Bounds]:
    """Bounds of consecutive pieces of at most `max_tokens` each (at least 1), as equal in size as
    sentences allow. White space between pieces belongs to none."""
    parts: list[Bounds] = []
    for start, end in sentences(text):
        if budget.count(text[start:end]) <= max_tokens:
            parts.append((start, end))
        else:
            parts += _cut_sentence(text, start, end, max_tokens, budget)
    sizes = [budget.count(text[start:end]) for start, end in parts]
    num_pieces = max(1, math.ceil(sum(sizes) / max_tokens))
    aim = min(max_tokens, math.ceil(sum(sizes) / num_pieces * 1.1))
    return _merged(parts, lambda start, end: budget.count(text[start:end]) <= aim)


def cut_table(unit: Unit, max_tokens: int, budget: Budget) -> list[list[Piece]]:
    """Groups of pieces, a chunk each: rows, behind the header row in all but the first (which has
    it anyway, unless the table goes on from the page before). A header of more than half the limit
    is not repeated."""
    page, offset, _ = unit.piece
    rows = _rows(unit.text)
    header, header_text = unit.header, unit.header_text
    if header is None and len(rows) >= _MIN_ROWS:
        header, header_text = first_row(unit), unit.text[slice(*rows[0])]
    header_tokens = budget.count(header_text) if header else 0
    if header_tokens * 2 > max_tokens:
        header, header_tokens = None, 0
    left = max_tokens - header_tokens
    parts: list[Bounds] = []
    for start, end in rows:
        if budget.count(unit.text[start:end]) <= left:
            parts.append((start, end))
        else:
            parts += _cut_sentence(unit.text, start, end, left, budget)
    groups: list[list[Piece]] = []
    for start, end in _merged(parts, lambda s, e: budget.count(unit.text[s:e]) <= left):
        piece = (page, offset + start, offset + end)
        holds_header = header is not None and header[0] == page and piece[1] == header[1]
        groups.append([piece] if header is None or holds_header else [header, piece])
    return groups


def _rows(text: str) -> list[Bounds]:
    rows: list[Bounds] = []
    start = 0
    for row in text.split("\n"):
        if row.strip():
            rows.append((start, start + len(row)))
        start += len(row) + 1
    return rows


def _merged(parts: Sequence[Bounds], fits: Callable[[int, int], bool]) -> list[Bounds]:
    """Neighbours put together as long as they fit."""
    result: list[Bounds] = []
    for start, end in parts:
        if result and fits(result[-1][0], end):
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


def _cut_sentence(text: str, start: int, end: int, max_tokens: int, budget: Budget) -> list[Bounds]:
    """Pieces of one sentence, at the last clause end or blank that leaves a piece well filled."""
    pieces: list[Bounds] = []
    token_ends = [start + high for _, high in budget.offsets(text[start:end])]
    while start < end:
        first = bisect_right(token_ends, start)
        stop = min(end, start + max_tokens * _CHARS_PER_TOKEN)
        if len(token_ends) - first > max_tokens:
            stop = min(stop, max(token_ends[first + max_tokens - 1], start + 1))
        # A word that is cut may count more tokens than it did whole.
        while stop - start > 1 and budget.count(text[start:stop]) > max_tokens:
            stop = start + max(1, (stop - start) * 9 // 10)
        if stop < end:
            stop = _clause_end(text, start, stop)
        low, high = _stripped(text, start, stop)
        if low < high:
            pieces.append((low, high))
        start = stop
    return pieces


def _clause_end(text: str, start: int, stop: int) -> int:
    """The last place to part in the second half of `text[start:stop]`, or `stop`."""
    for pattern in (_CLAUSE_END, _BLANK):
        ends = [match.end() for match in pattern.finditer(text, start + (stop - start) // 2, stop)]
        if ends:
            return ends[-1]
    return stop


def _stripped(text: str, start: int, end: int) -> Bounds:
    piece = text[start:end]
    return (start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))
