"""A sentence or quote taken apart once, for all checks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

from core.sentences import sentences
from query.answers.verification.dates import Date, find_dates
from query.answers.verification.quantities import Quantity, find_quantities, loose_values
from query.answers.verification.tokens import Token, TokenKind, prepare, tokenize

_CLAUSE_MARKS = frozenset(",;:()")
_CLAUSE_WORDS = frozenset({
    "but", "whereas", "while", "although", "unless", "except", "if", "when", "because", "and", "or",
    "aber", "sondern", "während", "obwohl", "außer", "wenn", "falls", "weil", "und", "oder",
})  # fmt: skip
_CACHED = 256


@dataclass(frozen=True)
class Statement:
    """In `tokens` a date is one token. `clauses` are ranges of tokens, cut at punctuation and
    conjunctions, each with at least one content word."""

    text: str
    language: str
    tokens: tuple[Token, ...]
    dates: tuple[Date, ...]
    quantities: tuple[Quantity, ...]

    @cached_property
    def measured(self) -> frozenset[int]:
        """Places of the tokens that spell quantities."""
        return frozenset(i for q in self.quantities for i in range(q.first, q.after))

    @cached_property
    def content(self) -> tuple[int, ...]:
        """Places of the content words, without quantities and dates."""
        return tuple(
            i for i, token in enumerate(self.tokens) if token.is_content and i not in self.measured
        )

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of all words, quantities' words included."""
        return frozenset(term for token in self.tokens for term in token.terms)

    @cached_property
    def normals(self) -> frozenset[str]:
        return frozenset(token.normal for token in self.tokens)

    @cached_property
    def clauses(self) -> tuple[range, ...]:
        return tuple(_clauses(self))

    @cached_property
    def clause_ends(self) -> tuple[int, ...]:
        """Where in the text each clause ends."""
        return tuple(self.tokens[clause.stop - 1].end for clause in self.clauses)

    @cached_property
    def sentence_ends(self) -> tuple[int, ...]:
        return tuple(end for _, end in sentences(self.text))

    def sentence_of(self, place: int) -> int:
        """The number of the sentence that the token stands in."""
        return bisect_left(self.sentence_ends, self.tokens[place].end)

    def clause_terms(self, clause: Iterable[int]) -> frozenset[str]:
        return frozenset(term for i in clause for term in self.tokens[i].terms)

    @cached_property
    def loose_values(self) -> frozenset[Decimal]:
        """Numbers inside codes, and the years of dates."""
        years = frozenset(Decimal(year) for date in self.dates for year in date.years)
        return loose_values(self.tokens) | years

    @cached_property
    def lone_years(self) -> frozenset[int]:
        """Numbers by themselves that may be years."""
        return frozenset(
            int(value)
            for quantity in self.quantities
            if not quantity.unit
            for value in quantity.all_values
            if value == int(value) and 1000 <= value < 2200
        )


@lru_cache(maxsize=_CACHED)
def read_statement(text: str, language: str) -> Statement:
    """Pure; the same quotes are read for every sentence of an answer, so some are kept."""
    prepared = prepare(text)
    dates = find_dates(prepared)
    tokens = tuple(_with_dates(tokenize(prepared, language), dates))
    return Statement(
        prepared, language, tokens, tuple(dates), tuple(find_quantities(tokens, language))
    )


def _with_dates(tokens: Sequence[Token], dates: Sequence[Date]) -> list[Token]:
    """The tokens with those of each date as one."""
    kept = [
        token
        for token in tokens
        if not any(date.start < token.end and token.start < date.end for date in dates)
    ]
    whole = [
        Token(TokenKind.DATE, date.text, date.text.lower(), date.terms, date.start, date.end)
        for date in dates
    ]
    return sorted([*kept, *whole], key=lambda token: token.start)


def _clauses(statement: Statement) -> Iterator[range]:
    """Cut at clause marks, conjunctions and ends of sentences; a piece without a content word or
    quantity goes with the next (the last: with the one before)."""
    ends = set(statement.sentence_ends)
    pieces: list[range] = []
    start = 0
    for place, token in enumerate(statement.tokens):
        if place in statement.measured:
            continue
        if token.normal in _CLAUSE_WORDS and place > start:
            pieces.append(range(start, place))
            start = place
        elif token.text in _CLAUSE_MARKS or token.end in ends:
            pieces.append(range(start, place + 1))
            start = place + 1
    pieces.append(range(start, len(statement.tokens)))
    bearing = {place for place, token in enumerate(statement.tokens) if token.terms}
    bearing |= statement.measured
    carried = 0
    for piece in pieces:
        if bearing.intersection(piece):
            yield range(piece.start - carried, piece.stop)
            carried = 0
        else:
            carried += len(piece)
