"""Names, acronyms and codes of a sentence: the quotes or their headings must have them.

A capital says nothing at the beginning of a sentence, nor in German, where nouns have one; there a
name is known by its title or company form, or because it stands where the quote has another word
(`replacements`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import regex

from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.statements import Statement
from query.answers.verification.tokens import Token, listed, terms_of_word

_ACRONYM = regex.compile(r"(?=(?:\P{Lu}*\p{Lu}){2})[\p{Lu}\p{N}&.\-/]+s?")
_CODE = regex.compile(r"(?=.*\p{L})(?=.*\p{N}).+")
_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}.'’-]+")
_CAPITAL_NOUNS = frozenset({"de", "lb"})
_TITLES = frozenset(
    listed("mr mrs ms dr prof herr frau herrn firma stadt gemeinde familie sir captain judge")
)
_NO_NAMES = frozenset(
    listed(
        "i monday tuesday wednesday thursday friday saturday sunday yes no ok section chapter"
        " article figure table page appendix annex"
    )
)
# A name's own endings: Germany / German, Smith / Smiths.
_ENDINGS = frozenset({"s", "es", "n", "an", "ian", "y", "ern", "isch", "ische", "ese", "ish"})
_ADJECTIVE_ENDINGS = ("ian", "ish", "ese", "isch", "ische", "ischen")
_OPENERS = frozenset("\"'“”„«»(:-*•")
_STOPS = frozenset(".!?")


def find_names(statement: Statement) -> list[Token]:
    """The tokens that are surely (part of) a name, an acronym or a code."""
    tokens = statement.tokens
    return [
        token
        for place, token in enumerate(tokens)
        if token.is_word and place not in statement.measured and _is_name(statement, place)
    ]


def name_problems(sentence: Statement, quotes: Sequence[Statement]) -> list[Problem]:
    """The names that neither quotes nor headings have."""
    known = frozenset(term for quote in quotes for term in quote.terms)
    spoken = frozenset(token.normal for quote in quotes for token in quote.tokens)
    acronyms = _initials(quotes)
    missing: list[str] = []
    for token in find_names(sentence):
        if not _is_known(token, known, spoken) and token.normal.strip(".") not in acronyms:
            missing.append(token.text)
    if missing and _abbreviated(sentence, missing, spoken):
        return [Problem(ProblemKind.NAME, " ".join(missing), is_hard=False)]
    return [Problem(ProblemKind.NAME, text) for text in missing]


def _is_name(statement: Statement, place: int) -> bool:
    token = statement.tokens[place]
    if token.normal in _NO_NAMES:
        return False
    if _CODE.fullmatch(token.text) or _ACRONYM.fullmatch(token.text):
        return True
    if not _CAPITALISED.fullmatch(token.text) or not token.is_content:
        return False
    before = statement.tokens[place - 1] if place else None
    if before is not None and before.normal == "." and place > 1:
        before = (
            statement.tokens[place - 2] if statement.tokens[place - 2].normal in _TITLES else before
        )
    if before is not None and before.normal in _TITLES:
        return True
    if statement.language in _CAPITAL_NOUNS:
        return False
    if before is not None and before.text not in _OPENERS and before.text not in _STOPS:
        return True
    return _opens_a_name(statement, place)


def _opens_a_name(statement: Statement, place: int) -> bool:
    """ "Maria Lopez" at the beginning of a sentence."""
    if place + 1 >= len(statement.tokens):
        return False
    following = statement.tokens[place + 1]
    return (
        following.is_content
        and _CAPITALISED.fullmatch(following.text) is not None
        and following.normal not in _NO_NAMES
    )


def _is_known(token: Token, known: Collection[str], spoken: Collection[str]) -> bool:
    bare = token.normal.removesuffix("'s").removesuffix("’s")
    if bare in spoken or token.normal in spoken:
        return True
    terms = terms_of_word(bare, "en") or token.terms
    joined = regex.sub(r"[\W_]", "", bare)
    if joined in known or (token.terms and token.terms[-1] in known):
        return True
    if terms and all(term in known for term in terms):
        return True
    return any(_differs_by_ending(bare, other) for other in spoken)


def _differs_by_ending(one: str, other: str) -> bool:
    """ "Germany" and "German", "Norway" and "Norwegian"."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.startswith(short) and long[len(short) :] in _ENDINGS:
        return True
    stem = short[:-2]
    return len(stem) >= 4 and long.startswith(stem) and long.endswith(_ADJECTIVE_ENDINGS)


def _initials(quotes: Sequence[Statement]) -> frozenset[str]:
    """Acronyms that capitalised words in the quotes spell: World Health Organization -> who."""
    found: set[str] = set()
    for quote in quotes:
        run = ""
        for token in quote.tokens:
            if token.is_word and token.text[:1].isupper():
                run += token.normal[0]
                found.update(run[start:] for start in range(len(run) - 1))
            elif token.normal not in {"of", "and", "for", "the", "für", "und", "der", "des"}:
                run = ""
    return frozenset(found)


def _abbreviated(sentence: Statement, missing: Sequence[str], spoken: Collection[str]) -> bool:
    """The sentence spells a name of which the quotes have the initials."""
    return any(
        len(acronym) >= 3 and acronym in spoken
        for acronym in _initials([sentence])
        if len(acronym) <= len(missing) + 1
    )
