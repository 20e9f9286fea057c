"""Right words in the wrong place: a value that the quote gives to something else, or the quote's
sentence with one word replaced by another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.quantities import ORDINAL_UNIT
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token, listed
from query.answers.verification.units import same_unit

_PLACES = frozenset(
    listed("in aus nach bei von für mit an to from at by with near")
)  # before a German word with a capital, without an article: a name


@dataclass(frozen=True, slots=True)
class _Value:
    """A quantity or date and the number of its clause. `key`: what makes two of them the same."""

    text: str
    kind: str
    keys: frozenset[object]
    clause: int


def assignment_problems(sentence: Statement, quotes: Sequence[Statement]) -> list[Problem]:
    """Values that the sentence gives to something else than the quotes do.

    Where a quote has two values of a kind in two clauses, the words that only one of the clauses
    has say whose value it is.
    """
    found: list[Problem] = []
    wanted = list(_values(sentence))
    said = frozenset(key for value in wanted for key in value.keys)
    for value in wanted:
        verdicts = [
            verdict
            for quote in quotes
            if (verdict := _is_of_another(value, said, sentence, quote)) is not None
        ]
        if verdicts and all(verdicts):
            found.append(Problem(ProblemKind.ASSIGNED, value.text))
    return found


def replacements(
    sentence: Statement, quotes: Sequence[Statement], known: Collection[str]
) -> list[Problem]:
    """Words that no quote has, where the quote has another word between the same neighbours."""
    found: list[Problem] = []
    for place in sentence.content:
        token = sentence.tokens[place]
        if set(token.terms) & set(known):
            continue
        around = _neighbours(sentence.tokens, place)
        for quote in quotes:
            if _is_replaced(sentence, around, quote):
                before = around[0]
                is_name = (
                    token.text[:1].isupper() and before is not None and before.normal in _PLACES
                )
                found.append(Problem(ProblemKind.REPLACED, token.text, is_hard=is_name))
                break
    return found


def _values(statement: Statement) -> Iterator[_Value]:
    for quantity in statement.quantities:
        if not quantity.is_soft:
            tokens = statement.tokens[quantity.first : quantity.after]
            clause = _clause_at(statement, tokens[0].start)
            keys: frozenset[object] = frozenset(quantity.all_values)
            yield _Value(" ".join(t.text for t in tokens), quantity.unit, keys, clause)
    for date in statement.dates:
        keys = frozenset(date.readings or {date.weekday, date.minutes})
        kind = "date" if date.readings else "weekday" if date.weekday is not None else "clock"
        yield _Value(date.text, kind, keys, _clause_at(statement, date.start))


def _clause_at(statement: Statement, start: int) -> int:
    for number, clause in enumerate(statement.clauses):
        if statement.tokens[clause.stop - 1].end > start:
            return number
    return max(len(statement.clauses) - 1, 0)


def _is_of_another(
    value: _Value, said: frozenset[object], sentence: Statement, quote: Statement
) -> bool | None:
    """Whether this quote gives the value to something else; None when it does not have it or gives
    no way to tell."""
    theirs = list(_values(quote))
    own = [v for v in theirs if v.keys & value.keys and same_unit(v.kind, value.kind)]
    rivals = [v for v in theirs if same_unit(v.kind, value.kind) and not v.keys & said]
    if not own:
        return None
    verdicts = [
        _fits_better(sentence, quote, rival.clause, mine.clause)
        for mine in own
        for rival in rivals
        if rival.clause != mine.clause
    ]
    return any(verdicts) if verdicts and len(own) == 1 else False


def _fits_better(sentence: Statement, quote: Statement, rival: int, own: int) -> bool:
    """Whether the words that only the rival's clause has are the sentence's, more than those that
    only the value's own clause has."""
    rival_terms, own_terms = (_distinct(quote, number) for number in (rival, own))
    only_rival, only_own = rival_terms - own_terms, own_terms - rival_terms
    if not only_rival or not only_own:
        return False
    spoken = sentence.terms | sentence.normals
    rival_share = len(only_rival & spoken) / len(only_rival)
    own_share = len(only_own & spoken) / len(only_own)
    return rival_share > own_share and (not own_share or rival_share >= 1)


def _distinct(quote: Statement, number: int) -> frozenset[str]:
    clause = quote.clauses[number]
    ordinals = [
        quote.tokens[i].normal
        for q in quote.quantities
        if q.unit == ORDINAL_UNIT
        for i in range(q.first, q.after)
        if i in clause
    ]
    words = (i for i in clause if i not in quote.measured and quote.tokens[i].is_word)
    return quote.clause_terms(words) | frozenset(ordinals)


Around = tuple[Token | None, Token | None]


def _neighbours(tokens: Sequence[Token], place: int) -> Around:
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    return before, after


def _is_replaced(sentence: Statement, around: Around, quote: Statement) -> bool:
    if not any(token is not None and token.is_content for token in around):
        return False
    for place in quote.content:
        token = quote.tokens[place]
        if set(token.terms) & sentence.terms:
            continue
        if _same(around, _neighbours(quote.tokens, place)):
            return True
    return False


def _same(one: Around, other: Around) -> bool:
    return all(
        (a.normal if a else None) == (b.normal if b else None)
        for a, b in zip(one, other, strict=True)
    )
