"""Sentence ends. In the cases, ‖ stands where a sentence ends and the next begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sentences import sentences

CASES = [
    # plain
    "One sentence only",
    "It rains. ‖We stay in! ‖Do you? ‖Yes.",
    "A stop without a blank.Next stays whole.",
    # numbers, decimals, versions
    "The pressure is 3.5 bar. ‖It rose by 1.250,50 EUR. ‖Fine.",
    "We use version 2.0.1. ‖Then it stopped in 2019. ‖The rest is 1/3.",
    "The limit is 12. ‖Students wait.",
    "Pay within 30 days. ‖10 % is added after 60.",
    # English abbreviations
    "Dr. Smith met Mr. Jones Jr. in St. Louis. ‖They talked.",
    "See Fig. 3 and Sec. IV of vol. 2. ‖No. 5 is empty. ‖The answer is no. ‖Then go.",
    "Use pumps, valves, etc. ‖The rest is spare.",
    "Use pumps, valves, etc. Pumps wear out first.",
    "Acme Inc. makes pumps. ‖It was sold to Acme Inc. ‖The price was low.",
    "The U.S. Army came to the U.K. ‖They stayed.",
    "It opens at 9 a.m. and closes at 5 p.m. ‖The bell rings.",
    "J. R. Smith wrote it. ‖Take vitamin C. ‖Smith agrees.",
    "See Appendix B. ‖Tests are there.",
    "E.g. pumps, i.e. machines, approx. 3 of them. ‖Good.",
    "This is modern art. ‖Then Art. 12 applies.",
    # German
    "Gem. § 5 Abs. 2 gilt z. B. die Frist von ca. 3 Tagen. ‖Danach d. h. später nicht.",
    "Am 3. Oktober 2024 endet die 2. Auflage vom 12. Mai. ‖Die dritte folgt.",
    "Der 1. Vorsitzende und die 5. Klasse, usw. ‖Das war alles.",
    "Das ist Nr. 5. ‖Die Regel gilt bzgl. Nr. 6 und vgl. Ziff. 7.",
    "Er zahlte 3,5 Mio. Euro. ‖„Gut.“ ‖Sie ging.",
    # quotes, brackets, notes
    '"Stop." ‖He went. ‖"Really?" he asked. ‖(See Fig. 3.) ‖Then he left.',
    "It was proven.[12] ‖Others doubt it.[3][4] ‖“So be it.”",
    "I am here to . . . submit. ‖It holds. ... ‖The reason is clear.",
    "Die 2., 3. und 4. Achse drehen. ‖In den Jahren 3 und 4. ‖Dann nicht.",
    "Wait... what is this? ‖Wait... ‖What is this?!",
    # numbered clauses and lists
    "1. The employer shall pay. ‖2. The employee shall work.",
    "4.2. Notice period. ‖It is long.",
    "(a) The first. ‖(b) The second.",
    "a. First point. ‖IV. Fourth part. ‖§ 7. Term.",
    # newlines end a sentence: rows, items, elements
    "Part | Price\n‖PX-200 | 12.50\n‖PX-300 | 14.00",
    "Heading\n\n‖A paragraph. ‖It goes on.\n\n\n‖Another one",
    "- first item\n‖- second item. ‖With more\n",
    # other scripts
    "今天下雨。‖明天呢？‖我们走吧！‖好",
    "価格は３．５円です。‖次へ。",
    "यह एक वाक्य है। ‖यह दूसरा है॥ ‖तीसरा",
    "هذه جملة. ‖هل هذا سؤال؟ ‖نعم.",
    "Это г. Москва. ‖Здесь живут люди.",
    "¿Qué pasa? ‖¡Nada! ‖El Sr. García lo sabe.",
    "Il est arrivé. ‖« Bonjour. » ‖M. Dupont aussi.",
]


@pytest.mark.parametrize("case", CASES, ids=[case[:30] for case in CASES])
def test_boundaries(case: str) -> None:
    text = case.replace("‖", "")
    expected = [part.strip() for part in case.split("‖")]
    assert [text[start:end] for start, end in sentences(text)] == expected


def test_offsets_count_code_points() -> None:
    text = "Ein 𝒳 im Satz. Und 👍🏽 noch einer."
    assert sentences(text) == [(0, 14), (15, len(text))]


@pytest.mark.parametrize("text", ["", " \n\t ", "\n\n"])
def test_nothing_gives_nothing(text: str) -> None:
    assert sentences(text) == []


@pytest.mark.parametrize("text", ["...", ". . .", "!", "。", "§ 5."])
def test_stops_alone_are_not_lost(text: str) -> None:
    assert "".join(text[a:b] for a, b in sentences(text)).replace(" ", "") == text.replace(" ", "")


PIECES = st.sampled_from(
    [
        "Dr.",
        "a",
        "The",
        "3.",
        "B.",
        "z.",
        ".",
        "!",
        "。",
        "「",
        "」",
        '"',
        ")",
        "\n",
        " ",
        "\u2028",
        "é",
    ]
)


@given(text=st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=40).map("".join)))
def test_sentences_are_ordered_trimmed_and_lose_nothing(text: str) -> None:
    bounds = sentences(text)
    last = 0
    for start, end in bounds:
        assert last <= start < end <= len(text)
        assert text[last:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        last = end
    assert text[last:].strip() == ""


def test_a_long_line_takes_linear_time() -> None:
    """Each stop looks back as far as its sentence began, so a megabyte without one must do too."""
    assert len(sentences("abc.def " * 60_000)) == 1
    assert len(sentences("Abc def. " * 60_000)) == 60_000
    assert len(sentences("Dr. A " * 60_000)) == 1
