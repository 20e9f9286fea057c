"""Numbers, units and bounds: what is the same, what is not, and how sure the objection is."""

import pytest

from core.domain.answers import Verdict
from query.answers.verification import verify
from query.answers.verification.statements import read_statement
from query.answers.verification.units import same_unit, unit_of

SUPPORTED, WEAK, UNSUPPORTED = Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED


def verdict(sentence: str, quote: str, language: str = "en") -> Verdict:
    """Of a number in a frame that is otherwise the same."""
    frame = {"en": "The valve of the test rig has {}", "de": "Das Ventil am Prüfstand hat {}"}
    return verify(
        frame[language].format(sentence), [frame[language].format(quote)], language
    ).verdict


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("1,000 g", "1000 g"),
        ("1 000 g", "1,000 g"),
        ("5mg", "5 mg"),
        ("five milligrams", "5 mg"),
        ("twenty-one days", "21 days"),
        ("one hundred and five bolts", "105 bolts"),
        ("2.5 million euros", "2,500,000 €"),
        ("€ 15", "15 euros"),
        ("12 %", "12 percent"),
        ("12 per cent", "12%"),
        ("3/4 l", "0.75 l"),
        ("½ l", "0.5 l"),
        ("two and a half hours", "2.5 hours"),
        ("half an hour", "0.5 hours"),
        ("-20 °C", "−20 °C"),
        ("minus 20 °C", "-20 °C"),
        ("5–10 bar", "5 to 10 bar"),
        ("between 5 and 10 bar", "5-10 bar"),
        ("at least 5 bar", "no less than 5 bar"),
        ("up to 5 bar", "at most 5 bar"),
        ("5 bar or more", "at least 5 bar"),
        ("60 km/h", "60 kph"),
        ("5 mg/kg", "5 mg per kg"),
        ("14 business days", "14 working days"),
        ("a 14-day period", "14 days"),
        ("20 m²", "20 square metres"),
        ("the 3rd stage", "the third stage"),
        ("size 4.2.1", "size 4.2.1"),
    ],
)
def test_the_same_quantity_in_another_spelling(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is not UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("5 g", "5 mg"),
        ("5 mW", "5 MW"),
        ("15 mg", "5 mg"),
        ("0.5 mg", "5 mg"),
        ("1.5 bar", "15 bar"),
        ("20 °C", "-20 °C"),
        ("$5", "€5"),
        ("5 percent", "5 percentage points"),
        ("5 bar", "between 4 and 6 bar"),
        ("5 bar", "5 to 10 bar"),
        ("at most 5 bar", "at least 5 bar"),
        ("less than 5 bar", "more than 5 bar"),
        ("5 mg per day", "5 mg per week"),
        ("14 days", "14 working days"),
        ("five pumps", "5 mg"),
        ("three pumps and five seals", "five pumps and three seals"),
        ("2 million euros", "2 billion euros"),
        ("the 3rd stage", "the second stage"),
        ("twenty-two days", "21 days"),
    ],
)
def test_another_quantity(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("5 bar", "at most 5 bar"),
        ("at least 5 bar", "5 bar"),
        ("more than 5 bar", "at least 5 bar"),
        ("5 to 10 bar", "5 bar or 10 bar"),
        ("5 bar", "5"),
    ],
)
def test_what_a_quote_says_less_exactly_is_weak(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is WEAK


@pytest.mark.parametrize(
    ("sentence", "quote", "expected"),
    [
        ("1.000 Liter", "1000 Liter", SUPPORTED),
        ("1,5 bar", "1,5 bar", SUPPORTED),
        ("1,5 bar", "15 bar", UNSUPPORTED),
        ("einundzwanzig Tage", "21 Tage", SUPPORTED),
        ("zweihundertfünf Tage", "205 Tage", SUPPORTED),
        ("dreieinhalb Stunden", "3,5 Stunden", SUPPORTED),
        ("höchstens 5 bar", "maximal 5 bar", SUPPORTED),
        ("mindestens 5 bar", "höchstens 5 bar", UNSUPPORTED),
        ("3 Mio. Euro", "3 Millionen Euro", SUPPORTED),
        ("5 Arbeitstage", "5 Tage", UNSUPPORTED),
    ],
)
def test_german_quantities(sentence: str, quote: str, expected: Verdict) -> None:
    assert verdict(sentence, quote, "de") is expected


def test_a_number_without_a_claim_is_nobodys_problem() -> None:
    quote = "Two of the pumps are old, and the operator replaces them in spring."
    assert verify("One of the pumps is old.", [quote], "en").problems == ()


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("1.234,5 kg", "de", [(("1234.5",), "kg")]),
        ("1,234.5 kg", "en", [(("1234.5",), "kg")]),
        ("1.234 kg", "und", [(("1.234", "1234"), "kg")]),
        ("12 dozen eggs", "en", [(("144",), "")]),
        ("a day and two nights", "en", [(("1",), "day"), (("2",), "night")]),
        ("PX-200 and 4.2.1", "en", []),
    ],
)
def test_values_and_units(text: str, language: str, expected: list[tuple[object, str]]) -> None:
    found = read_statement(text, language).quantities
    assert [(tuple(sorted(map(str, q.values))), q.unit) for q in found] == expected


def test_symbols_differ_by_case_and_words_do_not() -> None:
    assert unit_of("mW") != unit_of("MW")
    assert unit_of("Litres") == unit_of("l") == "l"
    assert unit_of("bananas") is None
    assert same_unit("pound", "GBP")
    assert not same_unit("g", "kg")
