"""The verdict: thresholds, several quotes, headings, nothing to check, and the model slots."""

import pytest

from core.domain.answers import Verdict
from query.answers.verification import verify

QUOTE = "Pumps in the northern hall are inspected by certified technicians every spring."


def test_more_words_of_the_quotes_are_more_support() -> None:
    texts = [
        "Technicians inspect pumps in the northern hall every spring.",
        "Technicians inspect pumps in the northern hall with great patience.",
        "Engineers repair valves slowly in a southern garden.",
    ]
    found = [verify(text, [QUOTE], "en") for text in texts]
    assert [support.verdict for support in found] == [
        Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED,
    ]  # fmt: skip
    scores = [support.support_score for support in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= support.support_score <= 1 for support in found)


def test_quotes_are_tried_together() -> None:
    quotes = ["The depot stores grit.", "The harbour stores salt."]
    sentence = "The depot stores grit and the harbour stores salt."
    assert verify(sentence, quotes, "en").verdict is Verdict.SUPPORTED
    assert verify(sentence, quotes[:1], "en").verdict is not Verdict.SUPPORTED


def test_headings_supply_names_and_years_but_are_no_evidence() -> None:
    quotes = ["The seal is replaced after 4,000 hours."]
    sentence = "The seal of the PX-200 is replaced after 4,000 hours."
    assert verify(sentence, quotes, "en").problems == ("name: PX-200",)
    found = verify(sentence, quotes, "en", headings=["PX-200 service manual"])
    assert found.verdict is Verdict.SUPPORTED
    assert verify(sentence, [], "en", headings=quotes).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("quotes", [[], [""], ["  \n"]])
def test_without_a_quote_nothing_is_supported(quotes: list[str]) -> None:
    found = verify("Pumps are inspected.", quotes, "en")
    assert (found.verdict, found.support_score) == (Verdict.UNSUPPORTED, 0.0)
    assert found.problems == ("no_quote",)


@pytest.mark.parametrize("sentence", ["Yes.", "It is.", "…"])
def test_a_sentence_without_a_claim_is_weak(sentence: str) -> None:
    assert verify(sentence, [QUOTE], "en").verdict is Verdict.WEAK


def test_words_about_the_source_are_no_claim() -> None:
    sentence = "According to the document, certified technicians inspect the pumps."
    assert verify(sentence, [QUOTE], "en").verdict is Verdict.SUPPORTED


def test_an_unknown_language_is_still_checked() -> None:
    quotes = ["Die Pumpe läuft mit 5 bar."]
    assert verify("Die Pumpe läuft mit 5 bar.", quotes, "und").verdict is Verdict.SUPPORTED
    assert verify("Die Pumpe läuft mit 6 bar.", quotes, "und").verdict is Verdict.UNSUPPORTED
    assert verify("Pompa pracuje przy 6 bar.", ["Pompa pracuje przy 5 bar."], "pl").verdict is (
        Verdict.UNSUPPORTED
    )


def test_a_similarity_lifts_a_paraphrase_but_no_hard_objection() -> None:
    sentence = "Every year in spring, experts examine the machines."
    plain = verify(sentence, [QUOTE], "en")
    lifted = verify(sentence, [QUOTE], "en", similarity=lambda _sentence, _quote: 0.9)
    assert plain.verdict is Verdict.UNSUPPORTED
    assert lifted.support_score > plain.support_score
    assert lifted.verdict is not Verdict.UNSUPPORTED
    wrong = "Pumps in the northern hall are not inspected by certified technicians."
    found = verify(wrong, [QUOTE], "en", similarity=lambda _sentence, _quote: 1.0)
    assert found.verdict is Verdict.UNSUPPORTED


def test_an_entailment_model_may_object() -> None:
    sentence = "Certified technicians inspect the pumps."
    kept = verify(sentence, [QUOTE], "en", nli=lambda _quotes, _sentence: (0.9, 0.05))
    assert kept.verdict is Verdict.SUPPORTED
    objected = verify(sentence, [QUOTE], "en", nli=lambda _quotes, _sentence: (0.1, 0.8))
    assert objected.verdict is Verdict.UNSUPPORTED
    assert objected.problems == ("contradicted",)


def test_the_same_question_has_the_same_answer() -> None:
    assert verify("Pumps are old.", [QUOTE], "en") == verify("Pumps are old.", [QUOTE], "en")


def test_what_is_too_long_for_a_sentence_is_unsupported() -> None:
    text = "pumps " * 400
    assert verify(text, [text], "en").problems == ("too_long",)
