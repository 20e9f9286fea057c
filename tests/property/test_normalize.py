"""Cleaning text never loses the way back."""

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from ingest.normalize import clean_text, normalize

# Letters, marks, presentation forms, controls, blanks and unpaired surrogates, all mixed.
_CHARS = st.one_of(
    st.characters(),
    st.sampled_from(
        "aeA1 .-\u00ad\u0301\u0308\u0327\ufb01\ufb03\ufefb\ufedf\u0000\u0007\t\n\r\u00a0"
    ),
    st.sampled_from("\u200b\u200d\u202e\ufeff\ufffd\ufffe\uf0b7\ue000\ud800\u1100\u1161\u11a8가"),
)
_RAW = st.text(_CHARS, max_size=40)


@given(_RAW)
@example("e\u0301\u0301 \ufb01\u0000nal\u00ad")
@example("\ufffd \ufffd\ufffd\ufffd 12")
@example("Chapter 1 . . . . . . . . 7")
def test_every_character_has_an_origin_in_order(raw: str) -> None:
    found = normalize(raw)
    origins = [found.origin(index) for index in range(len(found.text))]
    assert origins == sorted(origins)
    assert all(0 <= origin < len(raw) for origin in origins)
    for char, origin in zip(found.text, origins, strict=True):
        cluster = unicodedata.normalize("NFKC", raw[origin : origin + 8])
        # It stems from what stands there: the letter itself, a part of it, or white space.
        assert char in cluster or char in unicodedata.normalize("NFC", raw[origin:]) or char == " "


@given(_RAW)
def test_the_result_is_clean(raw: str) -> None:
    text = normalize(raw).text
    assert "  " not in text
    assert text == text.strip()
    assert unicodedata.is_normalized("NFC", text)
    for char in text.rstrip("\u00ad"):
        assert unicodedata.category(char) not in {"Cc", "Cs"}
        assert char not in "\ufffe\uffff\u200b\u202e\ufb01\ufefb\u00ad"


@given(_RAW)
def test_cleaning_twice_changes_nothing(raw: str) -> None:
    once = normalize(raw).text
    assert normalize(once).text == once


@given(st.text(st.sampled_from("abc XYZ 019 .,;-"), max_size=30))
def test_plain_words_stay_as_they_are(raw: str) -> None:
    words = raw.split()
    if "....." not in raw.replace(" ", ""):
        assert normalize(raw).text == " ".join(words)


@given(_RAW, st.integers(1, 10))
def test_values_are_cut(raw: str, max_chars: int) -> None:
    assert len(clean_text(raw, max_chars=max_chars)) <= max_chars
