"""How many of a sentence's content words the quotes have: the lexical part of the support.

A word counts in full when the quotes have its stem, for most of it when they have a word that
begins alike ("installation", "installed"), its opposite (what that means is for `polarity` to say)
or, in German, a compound with it. Words that say where something stands ("according to the
document") are nobody's claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from query.answers.verification.oppositions import is_opposed
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token, listed

NEAR_SHARE = 0.75
WORD_WEIGHT = 1.6  # of a word of six letters
_MIN_STEM = 4
_MIN_SHARE = 0.6
_MIN_COMPOUND_PART = 5
_FRAME = frozenset(
    listed(
        "yes no neither nor none never without except unless"
        " according document documents passage passages text texts source sources states"
        " stated state mentions mentioned says said describes described section information"
        " provided given answer question ja nein laut dokument dokumente dokumenten text quelle"
        " quellen abschnitt angaben frage antwort besagt"
    )
)


def share_of(token: Token, terms: Collection[str], language: str) -> float:
    """How much of a word some text has, 0 to 1, given the text's terms."""
    if not token.terms:
        return 0.0
    # The last term is the joined form of a compound, or the word itself.
    if token.terms[-1] in terms:
        return 1.0
    found = sum(_share_of_term(term, terms, language) for term in token.terms) / len(token.terms)
    if found < NEAR_SHARE and is_opposed(token, language, terms):
        return NEAR_SHARE
    return found


def coverage(sentence: Statement, terms: Collection[str]) -> float | None:
    """Mean share of the sentence's content words, 0 to 1; None when it has none."""
    found, total = weighed_words(sentence, terms)
    return found / total if total else None


def weighed_words(sentence: Statement, terms: Collection[str]) -> tuple[float, float]:
    """(weight of the content words that the terms have, weight of all that count)."""
    found = total = 0.0
    for place in sentence.content:
        token = sentence.tokens[place]
        share = share_of(token, terms, sentence.language)
        if share or token.normal not in _FRAME:
            found += _weight(token) * share
            total += _weight(token)
    return found, total


def best_clauses(terms: Iterable[str], clauses: Sequence[frozenset[str]]) -> list[int]:
    """The clauses that together have most of the terms, fewest first (greedy cover)."""
    left = set(terms)
    chosen: list[int] = []
    while left:
        best = max(range(len(clauses)), key=lambda i: (len(left & clauses[i]), -i), default=None)
        if best is None or not left & clauses[best]:
            break
        chosen.append(best)
        left -= clauses[best]
    return chosen


def _weight(token: Token) -> float:
    """Long words say more than short ones; a stand-in for how rare a word is."""
    return 1.0 + 0.1 * min(len(token.normal), 10)


def _share_of_term(term: str, terms: Collection[str], language: str) -> float:
    if term in terms:
        return 1.0
    return NEAR_SHARE if any(_is_near(term, other, language) for other in terms) else 0.0


def _is_near(term: str, other: str, language: str) -> bool:
    shared = _shared_prefix(term, other)
    if shared >= _MIN_STEM and shared >= _MIN_SHARE * max(len(term), len(other)):
        return True
    short, long = sorted((term, other), key=len)
    return language == "de" and len(short) >= _MIN_COMPOUND_PART and short in long


def _shared_prefix(one: str, other: str) -> int:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))
