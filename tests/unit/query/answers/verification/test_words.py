"""Names, negations, opposites and assignments, beyond the pairs of verification_pairs.jsonl."""

import pytest

from core.domain.answers import Verdict
from query.answers.verification import verify


def problems(sentence: str, *quotes: str, language: str = "en") -> tuple[str, ...]:
    return verify(sentence, quotes, language).problems


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("The German office moved.", "The office in Germany moved."),
        ("The WHO report is new.", "The report of the World Health Organization is new."),
        ("The px200 is new.", "The PX-200 is new."),
        ("Smith's report is new.", "The report by Smith is new."),
        ("The U.S. office moved.", "The office in the U.S. moved."),
    ],
)
def test_names_in_another_form_are_known(sentence: str, quote: str) -> None:
    assert problems(sentence, quote) == ()


def test_a_name_spelled_out_is_only_weakly_known() -> None:
    found = verify("The World Health Organization is new.", ["The WHO is new."], "en")
    assert found.verdict is not Verdict.SUPPORTED
    assert found.problems == ("name: World Health Organization",)


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("The lid is not open.", "The lid is closed."),
        ("Entry is not allowed.", "Entry is forbidden."),
        ("It is not unsafe to enter.", "It is safe to enter."),
        ("The tank is lead-free and new.", "The tank has no lead and is new."),
        (
            "The driver and the guests were not hurt.",
            "Neither the driver nor the guests were hurt.",
        ),
        ("See No. 5 of the list of pumps.", "The list of pumps has an entry: see No. 5."),
        ("Not only pumps but also seals are old.", "Pumps and seals are old."),
        ("The seal must be checked.", "The pump must not be opened, and the seal must be checked."),
    ],
)
def test_two_negations_or_none_agree(sentence: str, quote: str) -> None:
    assert verify(sentence, [quote], "en").verdict is not Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("The lid is not closed.", "The lid is closed."),
        ("The seal must not be checked.", "The pump must not open, and the seal must be checked."),
        ("Managers may enter.", "Staff who are not managers may enter."),
        ("Guests may enter.", "Guests mayn't enter."),
        ("They take requests by e-mail.", "They take requests by post but not by e-mail."),
        ("The drug must be frozen.", "The drug must be kept cool and must not be frozen."),
        ("Nobody was hurt in the fire.", "Somebody was hurt in the fire."),
        ("Check oil after starting.", "Check oil before starting and the filter after stopping."),
        ("Every pump is new.", "Some pumps are new."),
    ],
)  # fmt: skip
def test_one_negation_or_opposite_does_not(sentence: str, quote: str) -> None:
    assert verify(sentence, [quote], "en").verdict is Verdict.UNSUPPORTED


def test_a_restriction_that_is_left_out_is_weak() -> None:
    found = verify("Members may vote.", ["Only members may vote."], "en")
    assert found.verdict is Verdict.WEAK


def test_values_of_something_else() -> None:
    quote = "The pump holds 5 l and the tank holds 20 l."
    assert problems("The tank holds 20 l.", quote) == ()
    assert problems("The pump holds 20 l.", quote) == ("assigned: 20 l",)
    assert problems("The pump holds 5 l and the tank holds 20 l.", quote) == ()


def test_a_number_without_a_noun_of_its_own_may_count_the_same() -> None:
    quote = "Ulmen had 8,412 inhabitants in 2011 and 7,960 in 2021."
    assert problems("In 2021, Ulmen had 7,960 inhabitants.", quote) == ()


def test_what_is_compared_with_is_not_what_is_said() -> None:
    quote = "In 2022 the museum had 500 guests, more than in 2021."
    assert problems("The museum had 500 guests in 2022.", quote) == ()
    assert problems("The museum had 500 guests in 2021.", quote) == ("assigned: 2021",)


def test_words_of_one_quote_in_the_sentence_of_another() -> None:
    quotes = ("The landlord pays for the roof.", "The tenant pays for the doors.")
    assert problems("The tenant pays for the roof.", *quotes) == ("replaced: tenant",)
    assert problems("The tenant pays for the doors.", *quotes) == ()


def test_a_replaced_word_may_be_a_synonym() -> None:
    found = verify("A new card costs a small charge.", ["A new card costs a small fee."], "en")
    assert found.verdict is Verdict.WEAK
    assert found.problems == ("replaced: charge",)
