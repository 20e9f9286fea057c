"""Dates and times in every usual spelling."""

from itertools import pairwise

import pytest

from core.domain.answers import Verdict
from query.answers.verification import verify
from query.answers.verification.dates import find_dates


def verdict(sentence: str, quote: str, language: str = "en") -> Verdict:
    frame = {
        "en": "The meeting about the bridge took place {}.",
        "de": "Die Sitzung zur Brücke war {}.",
    }
    return verify(
        frame[language].format(sentence), [frame[language].format(quote)], language
    ).verdict


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("on 1 March 2024", "on 2024-03-01"),
        ("on March 1, 2024", "on 1st of March 2024"),
        ("on 1 Mar 2024", "on 01.03.2024"),
        ("on 3/1/2024", "on 1 March 2024"),
        ("on 13/01/2024", "on January 13, 2024"),
        ("in March 2024", "on 1 March 2024"),
        ("in 2024", "on 1 March 2024"),
        ("on Mondays at 2 pm", "on Monday at 14:00"),
        ("at noon", "at 12:00"),
        ("at 9.30 am", "at 9:30"),
    ],
)
def test_the_same_date(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is not Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("on 1 March 2024", "on 1 March 2023"),
        ("on 1 March 2024", "on 2 March 2024"),
        ("on 1 March 2024", "on 1 May 2024"),
        ("on 2024-01-03", "on 2024-03-01"),
        ("on 13/01/2024", "on 12/01/2024"),
        ("in March 2024", "in May 2024"),
        ("in 2024", "in 2023"),
        ("on Tuesday", "on Thursday"),
        ("at 2 pm", "at 2 am"),
        ("until 1 March 2024", "from 1 March 2024"),
        ("since 2019", "until 2019"),
        ("before 1 March 2024", "after 1 March 2024"),
    ],
)
def test_another_date(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [("on 1 March 2024", "on 1 March"), ("on 1 March 2024", "on 1 March, as all meetings in 2024")],
)
def test_a_quote_that_leaves_the_year_open_is_weak(sentence: str, quote: str) -> None:
    assert verdict(sentence, quote) is Verdict.WEAK


@pytest.mark.parametrize(
    ("sentence", "quote", "expected"),
    [
        ("am 3. Oktober 2024", "am 03.10.2024", Verdict.SUPPORTED),
        ("im März 2024", "am 1. März 2024", Verdict.SUPPORTED),
        ("am 3. Oktober 2024", "am 13. Oktober 2024", Verdict.UNSUPPORTED),
        ("um 14 Uhr", "um 14:00 Uhr", Verdict.SUPPORTED),
        ("montags", "mittwochs", Verdict.UNSUPPORTED),
    ],
)
def test_german_dates(sentence: str, quote: str, expected: Verdict) -> None:
    assert verdict(sentence, quote, "de") is expected


@pytest.mark.parametrize(
    "text",
    ["You may go.", "They march on.", "a 4:3 picture", "version 3.2", "99.99.2024", "1/2 cup"],
)
def test_what_is_no_date(text: str) -> None:
    assert find_dates(text) == []


def test_dates_do_not_overlap() -> None:
    found = find_dates("From 1 to 5 March 2024 at 9:30 am, then on Monday, 2024-03-11.")
    assert [date.text for date in found] == ["5 March 2024", "9:30 am", "Monday", "2024-03-11"]
    assert all(a.end <= b.start for a, b in pairwise(found))
