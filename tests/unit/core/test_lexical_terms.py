"""The analyser: what becomes of words, numbers, part numbers and scripts without spaces."""

import hashlib
import threading

import pytest

from core.lexical import index_terms
from core.lexical.analysis import language_of, word_terms
from core.lexical.bm25 import ANALYSER_VERSION, analyser_fingerprint
from core.lexical.stop_words import STOP_WORDS
from core.lexical.words import normal_form

WORDS = [
    # text, language, terms
    ("The pumps were running", "en", ["pump", "run"]),
    (
        "Die Kündigungsfristen betragen drei Monate",
        "de",
        ["kundigungsfrist", "betrag", "drei", "monat"],
    ),
    ("PX-200", "en", ["px", "200", "px200"]),
    ("PX200", "en", ["px", "200", "px200"]),
    ("m2", "en", ["m2"]),
    ("A1B2C3", "en", ["a1b2c3"]),
    ("1,250", "en", ["1", "250", "1250"]),
    ("1.250,50", "de", ["1", "250", "50", "1250.50"]),
    ("1,250.50", "en", ["1", "250", "50", "1250.50"]),
    ("1'000'000", "de", ["1", "000", "000", "1000000"]),
    ("3.5", "en", ["3", "5", "3.5"]),
    ("3,5", "de", ["3", "5", "3.5"]),
    ("12.03.2024", "de", ["12", "03", "2024", "12.03.2024"]),
    ("4.2.1", "en", ["4", "2", "1", "4.2.1"]),
    ("U.S.A.", "en", ["usa"]),
    ("company's", "en", ["compani"]),
    ("well-known", "en", ["well", "known", "wellknown"]),
    ("word,word", "en", ["word", "word"]),
    ("L'homme", "fr", ["homm"]),
    ("Straße", "de", ["strass"]),
    ("soft\u00adhyphen", "en", ["softhyphen"]),
    ("Brand™ footnote² 6½", "en", ["brand", "footnot", "6", "1", "2", "1.2"]),
    ("ﬁnal", "en", ["final"]),
    ("東京", "ja", ["東", "京", "東京"]),
    ("iPhone手机3号", "zh", ["iphon", "手", "机", "手机", "3", "号"]),
    ("สวัสดี", "th", ["สวั", "วัส", "ัสด", "สดี"]),
    ("한국어는", "ko", ["한국어는", "한국", "국어", "어는"]),
    ("किताबें", "hi", ["किताब"]),
    ("", "en", []),
    (" — … !", "en", []),
]


@pytest.mark.parametrize(("text", "language", "terms"), WORDS, ids=[row[0] for row in WORDS])
def test_terms(text: str, language: str, terms: list[str]) -> None:
    assert index_terms(text, language) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("PX-200", "px200"),
        ("PX\u2011200", "PX-200"),
        ("1,250", "1.250"),
        ("1,250", "1250"),
        ("3.5", "3,5"),
        ("e-mail", "email"),
        ("naïve", "naive"),
        ("résumés", "resume"),
        ("Ｐｉｎｃｉｔｅ", "pincite"),
        ("cafe\u0301", "café"),
        ("ΑΘΗΝΑ", "αθηνα"),
        ("İstanbul", "istanbul"),
    ],
)
def test_two_spellings_share_a_term(one: str, other: str) -> None:
    assert set(index_terms(one, "en")) & set(index_terms(other, "en"))


def test_combining_marks_do_not_split_words() -> None:
    assert len(index_terms("हिन्दी", "hi")) == 1


@pytest.mark.parametrize(
    ("word", "language", "rules"),
    [
        ("running", "de", "de"),
        ("running", "zh", "en"),
        ("running", "und", "en"),
        ("насос", "en", "ru"),
        ("насос", "uk", "uk"),
        ("पंप", "en", "hi"),
    ],
)
def test_a_words_script_decides_whose_rules_apply(word: str, language: str, rules: str) -> None:
    assert language_of(word, language) == rules


def test_stop_words_are_in_normal_form_and_single_words() -> None:
    for language, listed in STOP_WORDS.items():
        for word in listed:
            assert normal_form(word) == word, f"{language}: {word}"
            assert word_terms(word, language) == (), f"{language}: {word}"


def test_negations_are_not_stop_words() -> None:
    assert index_terms("not without no never", "en")
    assert index_terms("nicht kein ohne", "de")


def test_long_compounds_give_their_pieces_only() -> None:
    assert index_terms("a1.b2.c3.d4.e5.f6.g7", "en") == ["a1", "b2", "c3", "d4", "e5", "f6", "g7"]


def test_stemmers_may_be_used_from_many_threads() -> None:
    text = [f"running{i} walking jumps houses relational conditional" for i in range(200)]
    expected = [index_terms(line, "en") for line in text]
    word_terms.cache_clear()
    results: list[list[list[str]]] = []

    def work() -> None:
        results.append([index_terms(line, "en") for line in text])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_a_change_of_terms_comes_with_a_new_analyser_version() -> None:
    """Raise ANALYSER_VERSION and both values here whenever this fails: old indexes must be
    refused, since their terms are not the ones that questions will ask for."""
    golden = [index_terms(text, language) for text, language, _ in WORDS]
    golden += [sorted(listed) for _, listed in sorted(STOP_WORDS.items())]
    digest = hashlib.sha256(repr(golden).encode()).hexdigest()[:16]
    assert (ANALYSER_VERSION, digest) == (1, "eff6379204e8af57")


def test_the_fingerprint_is_short_and_stable() -> None:
    assert analyser_fingerprint() == analyser_fingerprint()
    assert len(analyser_fingerprint()) == 16
