"""Hand-made pairs that lexical overlap gets wrong, and true ones that must survive strictness."""

from collections import Counter

import pytest

from core.domain.answers import Verdict
from evals.verification_pairs import LabelledSentence, lexical_overlap, read_pairs
from query.answers.verification import verify
from query.answers.verification.verifier import SUPPORTED_COVERAGE

PAIRS = read_pairs()
ADVERSARIAL = [pair for pair in PAIRS if not pair.is_supported]
TRUE = [pair for pair in PAIRS if pair.is_supported]
# The least share of true sentences that are supported outright, not just weakly.
_MIN_SUPPORTED = 0.85


def test_there_are_twenty_of_each_kind_and_as_many_true_ones() -> None:
    wrong = Counter(pair.kind for pair in ADVERSARIAL)
    assert {kind for kind, count in wrong.items() if count >= 20} >= {
        "negation", "number", "date", "name",
    }  # fmt: skip
    assert wrong == Counter(pair.kind for pair in TRUE)
    assert sum(pair.language == "de" for pair in ADVERSARIAL) >= 10


@pytest.mark.parametrize("pair", ADVERSARIAL, ids=lambda pair: pair.sentence)
def test_overlap_is_fooled_and_the_verifier_is_not(pair: LabelledSentence) -> None:
    overlap = lexical_overlap(pair.sentence, pair.quotes, pair.language)
    assert overlap >= SUPPORTED_COVERAGE, "this pair proves nothing"
    support = verify(pair.sentence, pair.quotes, pair.language)
    assert support.verdict is Verdict.UNSUPPORTED
    assert support.problems


@pytest.mark.parametrize("pair", TRUE, ids=lambda pair: pair.sentence)
def test_what_the_quote_says_in_another_form_is_kept(pair: LabelledSentence) -> None:
    support = verify(pair.sentence, pair.quotes, pair.language)
    assert support.verdict is not Verdict.UNSUPPORTED, support.problems


def test_most_true_sentences_are_supported_outright() -> None:
    verdicts = [verify(pair.sentence, pair.quotes, pair.language).verdict for pair in TRUE]
    assert verdicts.count(Verdict.SUPPORTED) >= _MIN_SUPPORTED * len(verdicts)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.sentence)
def test_a_quote_supports_itself(pair: LabelledSentence) -> None:
    support = verify(pair.quotes[0], pair.quotes, pair.language)
    assert support.verdict is Verdict.SUPPORTED
    assert support.support_score == 1.0
    assert support.problems == ()
