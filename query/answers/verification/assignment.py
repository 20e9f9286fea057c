"""Right words in the wrong place: a value that the quote gives to something else, or the quote's
sentence with one word replaced by another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from query.answers.verification.numerals import ORDINALS
from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.quantities import ORDINAL_UNIT
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token, TokenKind, listed
from query.answers.verification.units import same_unit

_PLACES = frozenset(
    listed("in aus nach bei von für mit an to from at by with near")
)  # before a German word with a capital, without an article: a name


_MAX_VALUES = 24  # more are a table, whose rows have no clauses


@dataclass(frozen=True, slots=True)
class _Value:
    """A quantity or date and the number of its clause. `key`: what makes two of them the same."""

    text: str
    kind: str
    keys: frozenset[object]
    clause: int
    is_compared: bool


def assignment_problems(sentence: Statement, quotes: Sequence[Statement]) -> list[Problem]:
    """Values that the sentence gives to something else than the quotes do.

    Where a quote has two values of a kind in two clauses, the words that only one of the clauses
    has say whose value it is. A value after "than" is what something is compared with.
    """
    found: list[Problem] = []
    wanted = list(_values(sentence))
    available = [(quote, list(_values(quote))) for quote in quotes]
    available = [(quote, values) for quote, values in available if len(values) <= _MAX_VALUES]
    if len(wanted) > _MAX_VALUES:
        return []
    is_parted = len({value.clause for value in wanted}) > 1
    for value in wanted:
        if is_parted:
            clause = sentence.clauses[value.clause]
            spoken = sentence.clause_terms(clause) | {sentence.tokens[i].normal for i in clause}
            near = [other for other in wanted if other.clause == value.clause]
        else:
            spoken, near = sentence.terms | sentence.normals, wanted
        said = frozenset(key for other in near for key in other.keys)
        verdicts = [
            verdict
            for quote, theirs in available
            if (verdict := _is_of_another(value, said, spoken, quote, theirs)) is not None
        ]
        if verdicts and all(verdicts):
            found.append(Problem(ProblemKind.ASSIGNED, value.text))
    return found


def replacements(
    sentence: Statement, quotes: Sequence[Statement], known: Collection[str]
) -> list[Problem]:
    """Words where the nearest quote has another word between the same neighbours.

    A word of another quote or heading ("the tenant" for "the landlord"), a code or a name turns the
    quote into another statement; any other word may be a synonym.
    """
    main = max(quotes, key=lambda quote: _num_shared(sentence, quote))
    found: list[Problem] = []
    for place, token in enumerate(sentence.tokens):
        if not _may_be_replaced(sentence, place) or _words(sentence, place) & main.terms:
            continue
        if token.normal in main.normals:
            continue
        other = _replaced_in(main, _neighbours(sentence.tokens, place), sentence)
        if other is not None:
            is_hard = not _words(sentence, place).isdisjoint(known) or _is_named(
                sentence.tokens, place, other
            )
            found.append(Problem(ProblemKind.REPLACED, token.text, is_hard=is_hard))
    return found


def _num_shared(sentence: Statement, quote: Statement) -> int:
    """Words and values that both have; a value counts twice."""
    values = [
        frozenset(v for q in s.quantities if not q.is_soft for v in q.all_values)
        for s in (sentence, quote)
    ]
    return len(sentence.terms & quote.terms) + 2 * len(values[0] & values[1])


def _may_be_replaced(statement: Statement, place: int) -> bool:
    token = statement.tokens[place]
    return token.is_word and (token.is_content or token.normal in ORDINALS)


def _words(statement: Statement, place: int) -> frozenset[str]:
    token = statement.tokens[place]
    return frozenset(token.terms or (token.normal,))


def _values(statement: Statement) -> Iterator[_Value]:
    for quantity in statement.quantities:
        if not quantity.is_soft:
            tokens = statement.tokens[quantity.first : quantity.after]
            keys: frozenset[object] = frozenset(quantity.all_values)
            yield _Value(
                " ".join(token.text for token in tokens),
                quantity.unit,
                keys,
                _clause_at(statement, tokens[0].start),
                _is_compared(statement, quantity.first),
            )
    for place, token in enumerate(statement.tokens):
        if token.kind is TokenKind.DATE:
            kind = token.terms[0].partition(":")[0] if len(token.terms) == 1 else "date"
            yield _Value(
                token.text,
                kind,
                frozenset({token.terms}),
                _clause_at(statement, token.start),
                _is_compared(statement, place),
            )


def _is_compared(statement: Statement, place: int) -> bool:
    """ "21 percent more than in 2021"."""
    before = [token.normal for token in statement.tokens[max(place - 2, 0) : place]]
    return bool({"than", "als"} & set(before))


def _clause_at(statement: Statement, start: int) -> int:
    return min(bisect_right(statement.clause_ends, start), max(len(statement.clauses) - 1, 0))


def _is_of_another(
    value: _Value,
    said: frozenset[object],
    spoken: frozenset[str],
    quote: Statement,
    theirs: Sequence[_Value],
) -> bool | None:
    """Whether this quote gives the value to something else; None when it does not have it or gives
    no way to tell."""
    own = [v for v in theirs if v.keys & value.keys and same_unit(v.kind, value.kind)]
    rivals = [v for v in theirs if same_unit(v.kind, value.kind) and not v.keys & said]
    if not own:
        return None
    if all(mine.is_compared for mine in own) and not value.is_compared:
        return True
    verdicts = [
        _fits_better(spoken, quote, rival.clause, mine.clause)
        for mine in own
        for rival in rivals
        if rival.clause != mine.clause
    ]
    return any(verdicts) if verdicts and len(own) == 1 else False


def _fits_better(spoken: frozenset[str], quote: Statement, rival: int, own: int) -> bool:
    """Whether the words that only the rival's clause has are the sentence's, more than those that
    only the value's own clause has."""
    rival_terms, own_terms = (_distinct(quote, number) for number in (rival, own))
    only_rival, only_own = rival_terms - own_terms, own_terms - rival_terms
    if not only_rival or not only_own:
        return False
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


def _replaced_in(main: Statement, around: Around, sentence: Statement) -> Token | None:
    """The word of the quote between the same neighbours, if the sentence does not have it."""
    if not any(token is not None and token.terms for token in around):
        return None
    for place, token in enumerate(main.tokens):
        if not _may_be_replaced(main, place) or token.normal in sentence.normals:
            continue
        if _words(main, place).isdisjoint(sentence.terms) and _same(
            around, _neighbours(main.tokens, place)
        ):
            return token
    return None


def _is_named(tokens: Sequence[Token], place: int, other: Token) -> bool:
    """Whether the word and the one that it replaces are names or codes."""
    token = tokens[place]
    before = tokens[place - 1] if place else None
    if before is None or not (token.text[:1].isupper() and other.text[:1].isupper()):
        return False
    is_code = any(character.isdecimal() for character in token.text)
    return is_code or before.normal in _PLACES or before.text[:1].isupper()


def _same(one: Around, other: Around) -> bool:
    return all(
        (a.normal if a else None) == (b.normal if b else None)
        for a, b in zip(one, other, strict=True)
    )
