"""Clauses of statements, as they are laid beside each other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from query.answers.verification.oppositions import Opposition
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token

_LISTED = {
    "en": """
        not cannot never no without neither nor none nobody nothing nowhere except unless excluding
        forbidden prohibited prohibits prohibit banned refuse refuses refused deny denies denied
        lack lacks lacked fail fails failed impossible exempt
    """,
    "de": """
        nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts niemand niemanden
        nirgends außer verboten untersagt unzulässig ausgenommen ausgeschlossen fehlt fehlen
        verweigert unmöglich
    """,
}
_NEGATORS = {language: frozenset(text.casefold().split()) for language, text in _LISTED.items()}
_HEAD_REACH = 4


@dataclass(frozen=True, eq=False)
class Clause:
    """One or more clauses of a statement. `terms`: of its words; `spoken`: with the words
    themselves."""

    statement: Statement
    places: tuple[int, ...]

    @cached_property
    def sentence(self) -> tuple[Statement, int]:
        """Which sentence of which statement it begins in."""
        return self.statement, self.statement.sentence_of(self.places[0])

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(self.statement.tokens[place] for place in self.places)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Without those of negations, which are counted and not matched."""
        negators = negators_of(self.statement.language)
        return frozenset(
            term for token in self.tokens if token.normal not in negators for term in token.terms
        )

    @cached_property
    def spoken(self) -> frozenset[str]:
        return self.terms | {token.normal for token in self.tokens}


def clauses_of(statement: Statement) -> list[Clause]:
    return [Clause(statement, tuple(places)) for places in statement.clauses]


def negators_of(language: str) -> frozenset[str]:
    return _NEGATORS["de" if language == "de" else "en"]


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def heads_of(clause: Clause, place: int) -> frozenset[str]:
    """The next content word of the clause, else the one before."""
    tokens = clause.statement.tokens
    at = bisect_left(clause.places, place)
    after = clause.places[at + 1 : at + 1 + _HEAD_REACH]
    for near in (*after, *reversed(clause.places[:at])):
        if tokens[near].terms:
            return frozenset(tokens[near].terms)
    return frozenset()


def spelled(clause: Clause, opposition: Opposition, side: int) -> str:
    return next(
        token.text
        for token in clause.tokens
        if not opposition.sides[side].isdisjoint({token.normal, *token.terms})
    )
