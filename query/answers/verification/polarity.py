"""Negations, opposites and restrictions: a sentence must not turn round what its quotes say.

Clause by clause: a clause of the sentence is laid beside the clauses of the quotes that have its
words, and the negations on both sides are counted. Two cancel out ("not uncommon", "not closed"
beside "open"), so what counts is whether both are odd.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from query.answers.verification.oppositions import (
    EXCLUSIVE,
    TIMING,
    Opposition,
    frequency_of,
    negated_base,
    poles,
    scales,
)
from query.answers.verification.overlap import best_clauses
from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.quantities import Bound
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token, TokenKind

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
_PAIRS = frozenset({("other", "than"), ("apart", "from"), ("aside", "from")})
_NOT_BEFORE = frozenset({"only", "just", "nur", "bloß", "bloss", "merely"})
# Below this share of matched words what it says is only a soft objection; below the other, none.
_SURE_SHARE = 0.6
_MIN_SHARE = 0.4
_HEAD_REACH = 4
_MAX_EQUALS = 16


@dataclass(frozen=True)
class _Clause:
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
        negators = _negators_of(self.statement.language)
        return frozenset(
            term for token in self.tokens if token.normal not in negators for term in token.terms
        )

    @cached_property
    def spoken(self) -> frozenset[str]:
        return self.terms | {token.normal for token in self.tokens}


@dataclass(frozen=True, slots=True)
class _Negation:
    """`heads`: terms of the nearest content words, what is negated."""

    text: str
    heads: frozenset[str]


def polarity_problems(sentence: Statement, quotes: Sequence[Statement]) -> list[Problem]:
    """What the sentence says the other way round than its quotes."""
    theirs = [clause for quote in quotes for clause in _clauses_of(quote)]
    their_terms = [clause.terms for clause in theirs]
    beside: dict[int, list[_Clause]] = defaultdict(list)
    for clause in _clauses_of(sentence):
        if chosen := best_clauses(clause.terms, their_terms):
            beside[chosen[0]].append(clause)
    found: list[Problem] = []
    for group in beside.values():
        # Clauses beside the same clause are one: "the driver and the passengers were not hurt".
        places = tuple(place for clause in group for place in clause.places)
        merged = _Clause(sentence, places)
        chosen = best_clauses(merged.terms, their_terms)
        found.extend(_problems(merged, [theirs[i] for i in chosen], theirs))
    return list(dict.fromkeys(found))


def _clauses_of(statement: Statement) -> list[_Clause]:
    return [_Clause(statement, tuple(places)) for places in statement.clauses]


def _problems(
    clause: _Clause, chosen: Sequence[_Clause], theirs: Sequence[_Clause]
) -> Iterator[Problem]:
    main = chosen[0]
    beside = _union(other.terms for other in chosen if other.sentence == main.sentence)
    num_unmatched = len(clause.terms - beside)
    if num_unmatched > (1 - _MIN_SHARE) * len(clause.terms):
        return
    is_sure = num_unmatched <= max(1, (1 - _SURE_SHARE) * len(clause.terms))
    num_matched = len(clause.terms & main.terms)
    equals = [other for other in theirs if len(clause.terms & other.terms) == num_matched]
    disagreements = [_disagreement(clause, [other, *chosen[1:]]) for other in equals[:_MAX_EQUALS]]
    if all(disagreements):
        yield from (replace(p, is_hard=is_sure) for p in disagreements[:1] if p)
    yield from _scale_problems(clause, chosen, is_sure=is_sure)
    yield from _restriction_problems(clause, main, is_sure=is_sure)


# -- negations and poles


def _disagreement(clause: _Clause, others: Sequence[_Clause]) -> Problem | None:
    """How the clause and the quotes' clauses disagree; None when they do not."""
    mine = _negations(clause, _union(other.terms for other in others))
    theirs = _negations(others[0], clause.terms)
    for other in others[1:]:
        if other.sentence != others[0].sentence:
            continue
        theirs += [n for n in _negations(other, clause.terms) if n.heads & clause.terms]
    opposites = list(_opposites(clause, _union(other.spoken for other in others)))
    if (len(mine) + len(theirs) + len(opposites)) % 2 == 0:
        return None
    if opposites:
        return Problem(ProblemKind.OPPOSITE, opposites[0])
    return Problem(ProblemKind.NEGATION, (mine or theirs)[0].text)


def _negators_of(language: str) -> frozenset[str]:
    return _NEGATORS["de" if language == "de" else "en"]


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _negations(clause: _Clause, other_terms: frozenset[str]) -> list[_Negation]:
    """The clause's negations; `other_terms` tell whether "unsafe" is a negated "safe"."""
    language = clause.statement.language
    negators = _negators_of(language)
    found = []
    for place in clause.places:
        token = clause.statement.tokens[place]
        if place in clause.statement.measured or not token.is_word:
            continue
        if _is_negator(clause, place, negators):
            found.append(_Negation(token.text, _heads(clause, place)))
        elif token.is_content and not set(token.terms) & other_terms:
            base = negated_base(token.normal, language, other_terms)
            if base:
                found.append(_Negation(token.text, base))
    return found


def _is_negator(clause: _Clause, place: int, negators: frozenset[str]) -> bool:
    tokens = clause.statement.tokens
    normal = tokens[place].normal
    following = tokens[place + 1].normal if place + 1 < len(tokens) else ""
    if normal in {"other", "apart", "aside"}:
        return (normal, following) in _PAIRS
    if normal.endswith(("n't", "n’t")):
        return True
    if normal not in negators or following in _NOT_BEFORE:
        return False
    if normal == "no" and following in {".", ","}:  # "No. 5", "No, ..."
        return False
    if normal == "not" and place and tokens[place - 1].normal == "or":  # "whether or not"
        return False
    return normal != "nor" or "neither" not in clause.statement.normals


def _heads(clause: _Clause, place: int) -> frozenset[str]:
    """The next content word of the clause, else the one before."""
    tokens = clause.statement.tokens
    at = bisect_left(clause.places, place)
    after = clause.places[at + 1 : at + 1 + _HEAD_REACH]
    for near in (*after, *reversed(clause.places[:at])):
        if tokens[near].terms:
            return frozenset(tokens[near].terms)
    return frozenset()


def _opposites(clause: _Clause, spoken: frozenset[str]) -> Iterator[str]:
    """The clause's words whose opposite, and not they themselves, the quotes have."""
    for pole in poles(clause.statement.language):
        mine = pole.side_of(clause.spoken)
        if len(mine) == 1 and pole.side_of(spoken) == {1 - next(iter(mine))}:
            yield _spelled(clause, pole, next(iter(mine)))


def _spelled(clause: _Clause, opposition: Opposition, side: int) -> str:
    return next(
        token.text
        for token in clause.tokens
        if not opposition.sides[side].isdisjoint({token.normal, *token.terms})
    )


# -- scales


def _scale_problems(
    clause: _Clause, chosen: Sequence[_Clause], *, is_sure: bool
) -> Iterator[Problem]:
    spoken = _union(_unmeasured(other) for other in chosen)
    own = _unmeasured(clause)
    for scale in scales(clause.statement.language):
        if scale.is_modal and _has_bound(clause) and any(map(_has_bound, chosen)):
            continue  # "must not exceed 16 bar" is "may be at most 16 bar"
        mine, theirs = scale.side_of(own), scale.side_of(spoken)
        if len(mine) == 1 and theirs and not mine & theirs:
            text = _spelled(clause, scale, next(iter(mine)))
            yield Problem(ProblemKind.OPPOSITE, text, is_hard=is_sure)
        elif len(mine) == 1 and len(theirs) > 1:
            yield from _head_problems(clause, chosen, scale, next(iter(mine)))
    yield from _timing_problems(clause, chosen)
    mine_often = _frequencies(clause)
    theirs_often = _union(_frequencies(other) for other in chosen)
    if mine_often and theirs_often and not mine_often & theirs_often:
        yield Problem(ProblemKind.OPPOSITE, " ".join(sorted(mine_often)), is_hard=is_sure)


def _head_problems(
    clause: _Clause, chosen: Sequence[_Clause], scale: Opposition, side: int
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


def _marked(clause: _Clause, words: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for place in clause.places:
        token = clause.statement.tokens[place]
        if token.normal in words:
            yield token.text, _heads(clause, place)


def _timing_problems(clause: _Clause, chosen: Sequence[_Clause]) -> Iterator[Problem]:
    """ "Until 1 March" beside "from 1 March"."""
    theirs = [(side, _time_terms(date)) for other in chosen for _, side, date in _timed(other)]
    for text, side, date in _timed(clause):
        sides = {other for other, terms in theirs if terms >= _time_terms(date)}
        if sides and side not in sides:
            yield Problem(ProblemKind.OPPOSITE, f"{text} {date.text}")


def _timed(clause: _Clause) -> Iterator[tuple[str, int, Token]]:
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


def _has_bound(clause: _Clause) -> bool:
    return any(
        quantity.bound is not Bound.EXACT
        for quantity in clause.statement.quantities
        if quantity.first in clause.places
    )


def _unmeasured(clause: _Clause) -> frozenset[str]:
    """The words outside quantities: "over 5" is a bound, not a place."""
    measured = clause.statement.measured
    tokens = [clause.statement.tokens[i] for i in clause.places if i not in measured]
    return frozenset(word for token in tokens for word in (token.normal, *token.terms))


def _frequencies(clause: _Clause) -> frozenset[str]:
    """How often: "daily" and "every day" are both `day`."""
    spelled = {f for token in clause.tokens if (f := frequency_of(token.normal))}
    for quantity in clause.statement.quantities:
        if quantity.first not in clause.places:
            continue
        opener = clause.statement.tokens[quantity.first].normal
        if quantity.is_soft and opener in {"every", "each", "per", "jede", "jeden", "jedes", "pro"}:
            spelled.add(quantity.unit)
        if quantity.per:
            spelled.add(quantity.per)
    return frozenset(spelled)


def _restriction_problems(clause: _Clause, main: _Clause, *, is_sure: bool) -> Iterator[Problem]:
    """ "only" on one side. Added, the sentence says more than the quote; left out, less exactly."""
    mine, theirs = _restriction(clause), _restriction(main)
    if mine and not theirs:
        yield Problem(ProblemKind.OPPOSITE, mine, is_hard=is_sure)
    elif theirs and not mine:
        yield Problem(ProblemKind.OPPOSITE, theirs, is_hard=False)


def _restriction(clause: _Clause) -> str:
    tokens = clause.statement.tokens
    for place in clause.places:
        is_negated = place > 0 and tokens[place - 1].normal in {"not", "nicht"}
        counts = place + 1 < len(tokens) and tokens[place + 1].is_number
        if tokens[place].normal in EXCLUSIVE and not is_negated and not counts:
            return tokens[place].text
    return ""
