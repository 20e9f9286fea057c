"""Numbers with what they count or measure, and whether the quotes say the same.

A number must be in the quotes with its unit, its "per", and its bound ("at least 5" is not "at most
5", nor is "5 to 10"). Nothing is converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto

from query.answers.verification.numerals import ORDINALS, Values, number_at
from query.answers.verification.tokens import Token
from query.answers.verification.units import CURRENCIES, unit_of

ORDINAL_UNIT = "ordinal"
TIMES_UNIT = "time"


class Bound(Enum):
    EXACT = auto()
    OVER = auto()
    AT_LEAST = auto()
    UNDER = auto()
    AT_MOST = auto()

    @property
    def is_lower(self) -> bool:
        return self in {Bound.OVER, Bound.AT_LEAST}

    @property
    def is_upper(self) -> bool:
        return self in {Bound.UNDER, Bound.AT_MOST}


@dataclass(frozen=True, slots=True)
class Quantity:
    """`high`: the other end of a range. `unit`, `per`: names of `units`, or "". `nouns`: terms of
    what is counted, when there is no unit. `is_soft`: nobody has to find it in the quotes ("one of
    them", "first"). Tokens [first, after) spell it, its bound and unit included."""

    values: Values
    first: int
    after: int
    high: Values | None = None
    unit: str = ""
    per: str = ""
    bound: Bound = Bound.EXACT
    nouns: frozenset[str] = frozenset()
    is_soft: bool = False

    @property
    def all_values(self) -> Values:
        return self.values | (self.high or frozenset())


def _phrases(listed: dict[Bound, str]) -> list[tuple[tuple[str, ...], Bound]]:
    pairs = [
        (tuple(phrase.split("_")), bound)
        for bound, phrases in listed.items()
        for phrase in phrases.split()
    ]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


_BEFORE = _phrases({
    Bound.OVER: "more_than over above greater_than larger_than longer_than exceeding exceeds exceed"
    " exceeded mehr_als über länger_als größer_als > older_than higher_than",
    Bound.AT_LEAST: "at_least a_minimum_of minimum_of minimum not_less_than no_less_than"
    " no_fewer_than not_below not_under mindestens wenigstens nicht_weniger_als nicht_unter ≥ >=",
    Bound.UNDER: "less_than fewer_than under below shorter_than smaller_than lower_than"
    " weniger_als unter kürzer_als kleiner_als <",
    Bound.AT_MOST: "at_most up_to not_more_than no_more_than no_longer_than not_longer_than"
    " a_maximum_of maximum_of maximum max not_exceed not_exceeding not_above not_over never_exceed"
    " höchstens maximal bis_zu nicht_mehr_als nicht_über ≤ <= no_later_than not_later_than"
    " spätestens",
})  # fmt: skip
_AFTER = _phrases({
    Bound.AT_LEAST: "or_more or_above or_older or_longer or_higher and_above oder_mehr oder_länger",
    Bound.AT_MOST: "or_less or_fewer or_below or_younger or_shorter or_lower oder_weniger at_most"
    " at_the_most",
})  # fmt: skip
_PER = frozenset({"per", "a", "an", "each", "every", "pro", "je", "/", "im", "am"})
_ONE = frozenset({"one", "eins"})
_ARTICLES = frozenset({"a", "an", "ein", "eine", "einen", "einem", "einer", "every", "each", "per",
                       "jede", "jeden", "jedes", "pro"})  # fmt: skip
_REPEATS = {"once": 1, "twice": 2, "thrice": 3, "einmal": 1, "zweimal": 2, "dreimal": 3,
            "viermal": 4, "fünfmal": 5, "sechsmal": 6}  # fmt: skip
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_RANGE_JOINTS = frozenset({"-", "to", "bis", "through"})
_PERIODS = frozenset({"s", "min", "h", "day", "week", "month", "quarter", "year"})


def find_quantities(tokens: Sequence[Token], language: str) -> list[Quantity]:
    """All quantities in order; none overlap."""
    found: list[Quantity] = []
    at = 0
    while at < len(tokens):
        quantity = _quantity_at(tokens, at, language)
        if quantity is None:
            at += 1
            continue
        start = max((found[-1].after if found else 0), 0)
        quantity = _with_bound(tokens, quantity, start)
        found.append(quantity)
        at = max(quantity.after, at + 1)
    return found


def loose_values(tokens: Sequence[Token]) -> frozenset[Decimal]:
    """Numbers inside codes ("PX-200" has 200)."""
    return frozenset(
        Decimal(run)
        for token in tokens
        if token.is_word and any(c.isdecimal() for c in token.text)
        for run in _digit_runs(token.text)
    )


def _digit_runs(text: str) -> Iterator[str]:
    run = ""
    for character in [*text, " "]:
        if character.isdecimal():
            run += character
        elif run:
            yield run
            run = ""


def _quantity_at(tokens: Sequence[Token], at: int, language: str) -> Quantity | None:
    token = tokens[at]
    if repeats := _REPEATS.get(token.normal):
        values = frozenset({Decimal(repeats)})
        per, after = _per(tokens, at + 1)
        return Quantity(values, at, after, unit=TIMES_UNIT, per=per, is_soft=repeats == 1)
    if token.normal in ORDINALS and not _is_time_unit_second(tokens, at):
        number = ORDINALS[token.normal]
        values = frozenset({Decimal(number)})
        return Quantity(values, at, at + 1, unit=ORDINAL_UNIT, is_soft=True)
    if token.normal == "half":
        return _half(tokens, at)
    if token.normal in _ARTICLES:
        unit, after = _unit(tokens, at + 1)
        if not unit:
            return None
        # Only the article: what is measured may be a number's own "per" or plain words.
        return Quantity(frozenset({Decimal(1)}), at, after, unit=unit, is_soft=True)
    number_found = number_at(tokens, at, language)
    if number_found is None:
        return None
    values, after = number_found
    ordinal = _ordinal_suffix(tokens, at, after)
    if ordinal:
        return Quantity(values, at, ordinal, unit=ORDINAL_UNIT)
    return _measured(tokens, at, values, after, language)


def _measured(
    tokens: Sequence[Token], at: int, values: Values, after: int, language: str
) -> Quantity:
    """The number with its sign, range, unit, and so on."""
    first = at
    if _has_sign(tokens, at):
        values, first = frozenset(-value for value in values), at - 1
    currency = unit_of(tokens[first - 1].text) if first else None
    if currency in CURRENCIES:
        first -= 1
    else:
        currency = None
    low_unit, low_after = _unit(tokens, after)
    high, high_after = _range_end(tokens, first, low_after if low_unit else after, language)
    if high is not None:
        after = high_after
        unit, after = _unit(tokens, after)
        unit = unit or low_unit
    else:
        unit, after = low_unit, low_after if low_unit else after
    per = ""
    if unit or currency:
        per, after = _per(tokens, after)
    is_one = tokens[at].normal in _ONE and not unit
    quantity = Quantity(
        values, first, after, high, unit or currency or "", per, is_soft=is_one,
    )  # fmt: skip
    if quantity.unit:
        return quantity
    return replace(quantity, nouns=_nouns(tokens, at, after))


def _has_sign(tokens: Sequence[Token], at: int) -> bool:
    if not at:
        return False
    before = tokens[at - 1]
    if before.normal == "minus":
        return True
    is_glued = before.text == "-" and before.end == tokens[at].start
    return is_glued and (at == 1 or tokens[at - 2].end < before.start)


def _range_end(
    tokens: Sequence[Token], first: int, after: int, language: str
) -> tuple[Values | None, int]:
    """The second number of "5 to 10", "5-10", "between 5 and 10"; not of "from 5 to 10", which may
    be a change."""
    if after + 1 >= len(tokens):
        return None, after
    before = tokens[first - 1].normal if first else ""
    joint = tokens[after].normal
    is_between = before in {"between", "zwischen"} and joint in {"and", "und"}
    is_change = before in {"from", "von"}
    if not is_between and (joint not in _RANGE_JOINTS or is_change):
        return None, after
    found = number_at(tokens, after + 1, language)
    return found or (None, after)


def _unit(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The unit at a place and where it ends; "" for none. An adjective may stand before a period
    of time ("five full years")."""
    if at < len(tokens) and tokens[at].text == "-" and at + 1 < len(tokens):
        glued = tokens[at].start == tokens[at - 1].end and tokens[at + 1].start == tokens[at].end
        return _unit(tokens, at + 1) if glued and tokens[at + 1].is_word else ("", at)
    for length in (2, 1):
        if at + length <= len(tokens):
            spelling = " ".join(token.text for token in tokens[at : at + length])
            if unit := unit_of(spelling.replace("° ", "°")):
                return unit, at + length
    if at < len(tokens) and "/" in tokens[at].text[1:]:
        unit = unit_of(tokens[at].text.partition("/")[0])
        return (unit, at) if unit else ("", at)
    if at < len(tokens) and "-" in tokens[at].text[1:]:
        unit = unit_of(tokens[at].text.partition("-")[0])
        return (unit, at + 1) if unit else ("", at)
    if at + 1 < len(tokens) and tokens[at].is_content and tokens[at].is_word:
        unit = unit_of(tokens[at + 1].text)
        if unit in _PERIODS and len(tokens[at + 1].text) > 2:
            return unit, at + 2
    return "", at


def _per(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    if at < len(tokens) and "/" in tokens[at].text[1:]:
        unit = unit_of(tokens[at].text.partition("/")[2])
        return (unit, at + 1) if unit else ("", at)
    if at + 1 < len(tokens) and tokens[at].normal in _PER:
        unit, after = _unit(tokens, at + 1)
        if unit:
            return unit, after
    return "", at


def _ordinal_suffix(tokens: Sequence[Token], at: int, after: int) -> int:
    """Where "3rd" ends, or 0."""
    if after < len(tokens) and after == at + 1 and tokens[after].start == tokens[at].end:
        return after + 1 if tokens[after].normal.startswith(_ORDINAL_ENDINGS) else 0
    return 0


def _is_time_unit_second(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].normal == "second" and at > 0 and tokens[at - 1].normal in {"per", "a", "/"}


def _half(tokens: Sequence[Token], at: int) -> Quantity | None:
    """ "half an hour"."""
    place = at + 1
    if place < len(tokens) and tokens[place].normal in {"a", "an"}:
        place += 1
    unit, after = _unit(tokens, place)
    return Quantity(frozenset({Decimal("0.5")}), at, after, unit=unit) if unit else None


def _nouns(tokens: Sequence[Token], at: int, after: int) -> frozenset[str]:
    """Terms of the next two content words, up to punctuation; none for what looks like a year."""
    text = tokens[at].text
    if len(text) == 4 and text.isdecimal() and text[0] in "12":
        return frozenset()
    found: list[str] = []
    num_words = 0
    for token in tokens[after : after + 5]:
        if not token.is_word or num_words == 2:
            break
        if token.is_content:
            found.extend(token.terms)
            num_words += 1
    return frozenset(found)


def _with_bound(tokens: Sequence[Token], quantity: Quantity, earliest: int) -> Quantity:
    """The quantity with the bound that its neighbours give it."""
    for phrase, bound in _BEFORE:
        start = quantity.first - len(phrase)
        spoken = tuple(token.normal for token in tokens[max(start, 0) : quantity.first])
        if start >= earliest and spoken == phrase:
            return replace(quantity, bound=bound, first=start)
    for phrase, bound in _AFTER:
        end = quantity.after + len(phrase)
        if tuple(token.normal for token in tokens[quantity.after : end]) == phrase:
            return replace(quantity, bound=bound, after=end)
    return quantity
