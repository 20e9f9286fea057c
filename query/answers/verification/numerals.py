"""Numbers in digits and in words, English and German, as values.

A spelling may stand for more than one value ("1.000" in a text whose language is not known), so a
number is a set of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

import regex

from query.answers.verification.tokens import Token, TokenKind, listed

Values = frozenset[Decimal]

_HALF = Decimal("0.5")
_POINT_GROUPS = frozenset({"de", "es", "it", "nl", "pt", "fr", "da", "nb", "no", "sv", "pl", "tr"})
_GROUPED = regex.compile(r"\d{1,3}(?:([,.'’ ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")

_ONES = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    " fifteen sixteen seventeen eighteen nineteen"
)
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_ENGLISH = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_GERMAN_ONES = listed(
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn"
    " vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
)
_GERMAN_TENS = listed("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")

SCALES: dict[str, int] = {
    "hundred": 100, "hundert": 100, "thousand": 1000, "tausend": 1000, "dozen": 12, "dutzend": 12,
    "million": 10**6, "millions": 10**6, "millionen": 10**6, "mio": 10**6, "mn": 10**6,
    "billion": 10**9, "billions": 10**9, "bn": 10**9, "milliarde": 10**9, "milliarden": 10**9,
    "mrd": 10**9, "trillion": 10**12, "trillions": 10**12,
}  # fmt: skip

ORDINALS: dict[str, int] = {
    word: value
    for value, words in enumerate(
        (
            "first erste ersten erster erstes 1st", "second zweite zweiten zweiter zweites 2nd",
            "third dritte dritten dritter drittes 3rd", "fourth vierte vierten vierter viertes 4th",
            "fifth fünfte fünften fünfter fünftes 5th", "sixth sechste sechsten 6th",
            "seventh siebte siebten 7th", "eighth achte achten 8th", "ninth neunte neunten 9th",
            "tenth zehnte zehnten 10th",
        ),
        1,
    )
    for word in words.split()
}  # fmt: skip


def digits(text: str, language: str) -> Values:
    """The values of a number in digits."""
    grouped = _GROUPED.fullmatch(text)
    if grouped is None:
        return frozenset({Decimal(text.replace(",", "."))})
    separator = grouped[1]
    plain = text.replace(separator, "").replace(",", ".")
    as_group = Decimal(plain)
    is_single = text.count(separator) == 1 and separator in ",." and len(text) <= 7
    if separator == " ":  # two columns of a table, or one number
        return frozenset({as_group, Decimal(text.rpartition(" ")[2].replace(",", "."))})
    if not is_single or plain.count("."):
        return frozenset({as_group})
    as_decimal = Decimal(text.replace(",", "."))
    if text.startswith("0"):
        return frozenset({as_decimal})
    if language in _POINT_GROUPS:
        return frozenset({as_group if separator == "." else as_decimal})
    if language == "en":
        return frozenset({as_group if separator == "," else as_decimal})
    return frozenset({as_group, as_decimal})


def number_at(tokens: Sequence[Token], at: int, language: str) -> tuple[Values, int] | None:
    """The number that begins at a token and the place after it; None when none begins there."""
    token = tokens[at]
    if token.kind is TokenKind.NUMBER:
        found = _fraction(tokens, at) or (digits(token.text, language), at + 1)
        return _scaled(tokens, *found)
    if token.kind is not TokenKind.WORD:
        return None
    if language == "de":
        value = _german().get(token.normal)
        return None if value is None else _scaled(tokens, frozenset({Decimal(value)}), at + 1)
    spelled = _english(tokens, at)
    if spelled is None:
        return None
    value, after = Decimal(spelled[0]), spelled[1]
    if tuple(token.normal for token in tokens[after : after + 3]) == ("and", "a", "half"):
        value, after = value + _HALF, after + 3
    return _scaled(tokens, frozenset({value}), after)


def _fraction(tokens: Sequence[Token], at: int) -> tuple[Values, int] | None:
    """ "3/4"; the denominators that people write."""
    if at + 2 >= len(tokens) or tokens[at + 1].text != "/" or not tokens[at + 2].is_number:
        return None
    above, below = tokens[at].text, tokens[at + 2].text
    if not (above.isdecimal() and below in {"2", "3", "4", "5", "8", "10"}):
        return None
    if int(above) >= int(below) or tokens[at + 2].start != tokens[at].end + 1:
        return None
    return frozenset({(Decimal(above) / Decimal(below)).normalize()}), at + 3


def _scaled(tokens: Sequence[Token], values: Values, after: int) -> tuple[Values, int]:
    while after < len(tokens) and (scale := SCALES.get(tokens[after].normal)):
        values = frozenset(value * scale for value in values)
        after += 1
        if after < len(tokens) and tokens[after].text == "." and tokens[after - 1].normal in {
            "mio", "mrd"
        }:  # fmt: skip
            after += 1
    return values, after


def _english(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """ "two", "twenty-one", "one hundred and five", "two thousand"."""
    small = _below_hundred(tokens, at)
    if small is None:
        return None
    value, after = small
    if after < len(tokens) and tokens[after].normal == "hundred":
        value, after = value * 100, after + 1
        rest = after + 1 if after < len(tokens) and tokens[after].normal == "and" else after
        if rest < len(tokens) and (more := _below_hundred(tokens, rest)):
            return value + more[0], more[1]
    return value, after


def _below_hundred(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    parts = tokens[at].normal.split("-")
    if len(parts) == 2 and parts[0] in _TENS and _ENGLISH.get(parts[1], 10) < 10:
        return _ENGLISH[parts[0]] + _ENGLISH[parts[1]], at + 1
    value = _ENGLISH.get(tokens[at].normal)
    if value is None:
        return None
    if tokens[at].normal in _TENS and at + 1 < len(tokens):
        ones = _ENGLISH.get(tokens[at + 1].normal, 10)
        if 0 < ones < 10:
            return value + ones, at + 2
    return value, at + 1


@lru_cache(maxsize=1)
def _german() -> dict[str, Decimal | int]:
    """0 to 9,999 as they are written; without "ein" and its forms, which are articles."""
    below_hundred = {word: value for value, word in enumerate(_GERMAN_ONES)}
    for tens, word in enumerate(_GERMAN_TENS, 2):
        below_hundred[word] = 10 * tens
        for ones in range(1, 10):
            below_hundred[f"{_GERMAN_ONES[ones]}und{word}"] = 10 * tens + ones
    below_thousand = dict(below_hundred)
    for hundreds in range(1, 10):
        for prefix in {_GERMAN_ONES[hundreds], "" if hundreds == 1 else _GERMAN_ONES[hundreds]}:
            below_thousand[f"{prefix}hundert"] = 100 * hundreds
            for word, value in below_hundred.items():
                if value:
                    below_thousand[f"{prefix}hundert{word}"] = 100 * hundreds + value
    words: dict[str, Decimal | int] = dict(below_thousand)
    for thousands in range(1, 10):
        for prefix in {_GERMAN_ONES[thousands], "" if thousands == 1 else _GERMAN_ONES[thousands]}:
            words[f"{prefix}tausend"] = 1000 * thousands
    for ones in range(2, 10):
        words[f"{_GERMAN_ONES[ones]}einhalb"] = ones + _HALF
    words["anderthalb"] = words["eineinhalb"] = 1 + _HALF
    words["eins"] = 1
    del words["ein"], words["null"]
    words["zwo"] = 2
    # casefolded, as the analyser gives words
    return {word.casefold(): value for word, value in words.items()}
