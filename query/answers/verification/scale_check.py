"""Words of degree, order and time on both sides: "must" and "may", "before" and "after", "only"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from query.answers.verification.clauses import Clause, heads_of, spelled, union
from query.answers.verification.oppositions import (
    EXCLUSIVE,
    TIMING,
    Opposition,
    frequency_of,
    scales,
)
from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.quantities import Bound
from query.answers.verification.tokens import Token, TokenKind


def scale_problems(clause: Clause, chosen: Sequence[Clause], *, is_sure: bool) -> Iterator[Problem]:
    spoken = union(_unmeasured(other) for other in chosen)
    own = _unmeasured(clause)
    for scale in scales(clause.statement.language):
        if scale.is_modal and _has_bound(clause) and any(map(_has_bound, chosen)):
            continue  # "must not exceed 16 bar" is "may be at most 16 bar"
        mine, theirs = scale.side_of(own), scale.side_of(spoken)
        if len(mine) == 1 and theirs and not mine & theirs:
            text = spelled(clause, scale, next(iter(mine)))
            yield Problem(ProblemKind.OPPOSITE, text, is_hard=is_sure)
        elif len(mine) == 1 and len(theirs) > 1:
            yield from _head_problems(clause, chosen, scale, next(iter(mine)))
    yield from _timing_problems(clause, chosen)
    mine_often = _frequencies(clause)
    theirs_often = union(_frequencies(other) for other in chosen)
    if mine_often and theirs_often and not mine_often & theirs_often:
        yield Problem(ProblemKind.OPPOSITE, " ".join(sorted(mine_often)), is_hard=is_sure)


def _head_problems(
    clause: Clause, chosen: Sequence[Clause], scale: Opposition, side: int
) -> Iterator[Problem]:
    """The quotes have both "before" and "after": which of them stands before the same word?"""
    for text, head in _marked(clause, scale.sides[side]):
        sides = {
            number
            for number, words in enumerate(scale.sides)
            for other in chosen
            for _, their_head in _marked(other, words)
            if head & their_head
        }
        if sides and side not in sides:
            yield Problem(ProblemKind.OPPOSITE, text)


def _marked(clause: Clause, words: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for place in clause.places:
        token = clause.statement.tokens[place]
        if token.normal in words:
            yield token.text, heads_of(clause, place)


def _timing_problems(clause: Clause, chosen: Sequence[Clause]) -> Iterator[Problem]:
    """ "Until 1 March" beside "from 1 March"."""
    theirs = [(side, _time_terms(date)) for other in chosen for _, side, date in _timed(other)]
    for text, side, date in _timed(clause):
        sides = {other for other, terms in theirs if terms >= _time_terms(date)}
        if sides and side not in sides:
            yield Problem(ProblemKind.OPPOSITE, f"{text} {date.text}")


def _timed(clause: Clause) -> Iterator[tuple[str, int, Token]]:
    tokens = clause.statement.tokens
    for place in clause.places:
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is None or not _time_terms(following):
            continue
        for side, words in enumerate(TIMING):
            if tokens[place].normal in words:
                yield tokens[place].text, side, following


def _time_terms(token: Token) -> frozenset[str]:
    """Of a date, or of a number that may be a year."""
    if token.kind is TokenKind.DATE:
        return frozenset(token.terms)
    is_year = token.is_number and len(token.text) == 4 and token.text.isdecimal()
    return frozenset({f"year:{token.text}"}) if is_year else frozenset()


def _has_bound(clause: Clause) -> bool:
    return any(
        quantity.bound is not Bound.EXACT
        for quantity in clause.statement.quantities
        if quantity.first in clause.places
    )


def _unmeasured(clause: Clause) -> frozenset[str]:
    """The words outside quantities: "over 5" is a bound, not a place."""
    measured = clause.statement.measured
    tokens = [clause.statement.tokens[i] for i in clause.places if i not in measured]
    return frozenset(word for token in tokens for word in (token.normal, *token.terms))


def _frequencies(clause: Clause) -> frozenset[str]:
    """How often: "daily" and "every day" are both `day`."""
    periods = {f for token in clause.tokens if (f := frequency_of(token.normal))}
    for quantity in clause.statement.quantities:
        if quantity.first not in clause.places:
            continue
        opener = clause.statement.tokens[quantity.first].normal
        if quantity.is_soft and opener in {"every", "each", "per", "jede", "jeden", "jedes", "pro"}:
            periods.add(quantity.unit)
        if quantity.per:
            periods.add(quantity.per)
    return frozenset(periods)


def restriction_problems(clause: Clause, main: Clause, *, is_sure: bool) -> Iterator[Problem]:
    """ "only" on one side. Added, the sentence says more than the quote; left out, less exactly."""
    mine, theirs = _restriction(clause), _restriction(main)
    if mine and not theirs:
        yield Problem(ProblemKind.OPPOSITE, mine, is_hard=is_sure)
    elif theirs and not mine:
        yield Problem(ProblemKind.OPPOSITE, theirs, is_hard=False)


def _restriction(clause: Clause) -> str:
    tokens = clause.statement.tokens
    for place in clause.places:
        is_negated = place > 0 and tokens[place - 1].normal in {"not", "nicht"}
        counts = place + 1 < len(tokens) and tokens[place + 1].is_number
        if tokens[place].normal in EXCLUSIVE and not is_negated and not counts:
            return tokens[place].text
    return ""
