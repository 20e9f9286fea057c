"""Whatever a generator writes, it gets a verdict, and a quote always supports itself."""

from hypothesis import given
from hypothesis import strategies as st

from core.domain.answers import Verdict
from query.answers.verification import Support, verify

LANGUAGES = st.sampled_from(["en", "de", "fr", "zh", "und"])
PIECES = st.sampled_from(
    [
        "not", "no", "nicht", "must", "may", "only", "before", "until", "1 March 2024",
        "3/4", "1,000", "-5", "5 mg", "€ 5", "5 to 10 °C", "between", "and", "half an hour",
        "12:30", "U.S.", "u.s.a.", "PX-200", "a/b", "e.g.", "½", "20 %", "twenty-one",
        "one hundred and", "every", "week", "3rd", "Maria", "Lopez", ".", ",", "(", "-",
        "/", "°", "'", "泵每年测试", "und", "ohne", "zweimal", "2.3.4",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=12).map(" ".join))


@given(TEXTS, st.lists(TEXTS, max_size=3), LANGUAGES)
def test_every_text_has_a_verdict(sentence: str, quotes: list[str], language: str) -> None:
    support = verify(sentence, quotes, language)
    assert 0.0 <= support.support_score <= 1.0
    assert (support.verdict is Verdict.UNSUPPORTED) or any(quote.strip() for quote in quotes)


@given(st.lists(PIECES, min_size=1, max_size=8).map(" ".join), LANGUAGES)
def test_a_quote_supports_itself(text: str, language: str) -> None:
    quotes = ["Pumps are tested.", text.replace(" ", "\n")]
    assert verify(text, quotes, language) == Support(Verdict.SUPPORTED, 1.0)
