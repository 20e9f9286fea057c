"""Negations, opposites and restrictions: a sentence must not turn round what its quotes say.

Clause by clause: a clause of the sentence is laid beside the clauses of the quotes that have its
words, and the negations on both sides are counted. Two cancel out ("not uncommon", "not closed"
beside "open"), so what counts is whether both are odd.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from query.answers.verification.clauses import (
    Clause,
    clauses_of,
    heads_of,
    negators_of,
    spelled,
    union,
)
from query.answers.verification.oppositions import is_opposed, negated_base, poles
from query.answers.verification.overlap import best_clauses
from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.scale_check import restriction_problems, scale_problems
from query.answers.verification.statements import Statement

_PAIRS = frozenset({("other", "than"), ("apart", "from"), ("aside", "from")})
_NOT_BEFORE = frozenset({"only", "just", "nur", "bloß", "bloss", "merely"})
# Below this share of matched words what it says is only a soft objection; below the other, none.
_SURE_SHARE = 0.6
_MIN_SHARE = 0.4
_MAX_EQUALS = 16


@dataclass(frozen=True, slots=True)
class _Negation:
    """`heads`: terms of the nearest content words, what is negated."""

    text: str
    heads: frozenset[str]


def polarity_problems(sentence: Statement, quotes: Sequence[Statement]) -> list[Problem]:
    """What the sentence says the other way round than its quotes."""
    theirs = [clause for quote in quotes for clause in clauses_of(quote)]
    their_terms = [clause.terms for clause in theirs]
    beside: dict[int, list[Clause]] = defaultdict(list)
    for clause in clauses_of(sentence):
        if chosen := best_clauses(clause.terms, their_terms):
            beside[chosen[0]].append(clause)
    found: list[Problem] = []
    for group in beside.values():
        # Clauses beside the same clause are one: "the driver and the passengers were not hurt".
        places = tuple(place for clause in group for place in clause.places)
        merged = Clause(sentence, places)
        chosen = best_clauses(merged.terms, their_terms)
        found.extend(_problems(merged, [theirs[i] for i in chosen], theirs))
    return list(dict.fromkeys(found))


def _problems(
    clause: Clause, chosen: Sequence[Clause], theirs: Sequence[Clause]
) -> Iterator[Problem]:
    main = chosen[0]
    beside = union(other.terms for other in chosen if other.sentence == main.sentence)
    unmatched = _unmatched(clause, beside, chosen)
    if len(unmatched) > (1 - _MIN_SHARE) * len(clause.terms):
        return
    is_sure = len(unmatched) <= (1 - _SURE_SHARE) * len(clause.terms)
    num_matched = len(clause.terms & main.terms)
    equals = [main] + [
        other
        for other in theirs
        if len(clause.terms & other.terms) == num_matched and other not in chosen
    ]
    disagreements = [_disagreement(clause, [other, *chosen[1:]]) for other in equals[:_MAX_EQUALS]]
    if all(disagreements):
        yield from (replace(p, is_hard=is_sure) for p in disagreements[:1] if p)
    yield from scale_problems(clause, chosen, is_sure=is_sure)
    yield from restriction_problems(clause, main, is_sure=is_sure)


def _unmatched(clause: Clause, beside: frozenset[str], chosen: Sequence[Clause]) -> frozenset[str]:
    """The clause's terms of which the others have neither the word nor its opposite."""
    negated = union(n.heads for other in chosen for n in _negations(other, clause.terms))
    language = clause.statement.language
    opposed = frozenset(
        term
        for token in clause.tokens
        if token.is_content and is_opposed(token, language, beside)
        for term in token.terms
    )
    return clause.terms - beside - negated - opposed


# -- negations and poles


def _disagreement(clause: Clause, others: Sequence[Clause]) -> Problem | None:
    """How the clause and the quotes' clauses disagree; None when they do not."""
    mine = _negations(clause, union(other.terms for other in others))
    theirs = _negations(others[0], clause.terms)
    for other in others[1:]:
        if other.sentence != others[0].sentence:
            continue
        theirs += [n for n in _negations(other, clause.terms) if n.heads & clause.terms]
    opposites = list(_opposites(clause, union(other.spoken for other in others)))
    if (len(mine) + len(theirs) + len(opposites)) % 2 == 0:
        return None
    if opposites:
        return Problem(ProblemKind.OPPOSITE, opposites[0])
    return Problem(ProblemKind.NEGATION, (mine or theirs)[0].text)


def _negations(clause: Clause, other_terms: frozenset[str]) -> list[_Negation]:
    """The clause's negations; `other_terms` tell whether "unsafe" is a negated "safe"."""
    language = clause.statement.language
    negators = negators_of(language)
    found = []
    for place in clause.places:
        token = clause.statement.tokens[place]
        if place in clause.statement.measured or not token.is_word:
            continue
        if _is_negator(clause, place, negators):
            found.append(_Negation(token.text, heads_of(clause, place)))
        elif token.is_content and token.terms[-1] not in other_terms:
            base = negated_base(token.normal, language, other_terms)
            if base:
                found.append(_Negation(token.text, base))
    return found


def _is_negator(clause: Clause, place: int, negators: frozenset[str]) -> bool:
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


def _opposites(clause: Clause, spoken: frozenset[str]) -> Iterator[str]:
    """The clause's words whose opposite, and not they themselves, the quotes have."""
    for pole in poles(clause.statement.language):
        mine = pole.side_of(clause.spoken)
        if len(mine) == 1 and pole.side_of(spoken) == {1 - next(iter(mine))}:
            yield spelled(clause, pole, next(iter(mine)))
