"""BM25 as sparse vectors, checked against the formula written out plainly."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.search import SparseVector
from core.lexical import count_terms, encode_document, encode_question, index_terms, term_index
from core.lexical.bm25 import OTHER_LANGUAGE_WEIGHT

CORPUS = [
    "The relief valve of pump PX-200 opens at 3.5 bar.",
    "Close the valve before the pump is opened, and wait for the pump to stop.",
    "Invoices are paid within thirty days.",
    "Overtime is paid at 1,250 a month.",
]


def dot(question: SparseVector, document: SparseVector) -> float:
    values = dict(zip(document.indices, document.values, strict=True))
    return sum(
        weight * values.get(index, 0.0)
        for index, weight in zip(question.indices, question.values, strict=True)
    )


def test_the_dot_product_with_idf_is_lucenes_bm25() -> None:
    lengths = [count_terms(text, "en") for text in CORPUS]
    average = sum(lengths) / len(lengths)
    question = "which pump valve opens?"
    question_terms = Counter(index_terms(question, "en"))
    frequencies = Counter(term for text in CORPUS for term in set(index_terms(text, "en")))
    idf = {
        term: math.log(1 + (len(CORPUS) - found + 0.5) / (found + 0.5))
        for term, found in frequencies.items()
    }
    weighted = encode_question(question, ["en"])
    by_index = {term_index(term): value for term, value in idf.items()}
    with_idf = SparseVector(
        weighted.indices,
        tuple(
            value * by_index.get(index, 0.0)
            for index, value in zip(weighted.indices, weighted.values, strict=True)
        ),
    )
    for text, length in zip(CORPUS, lengths, strict=True):
        counts = Counter(index_terms(text, "en"))
        expected = sum(
            times
            * idf[term]
            * counts[term]
            * 2.5
            / (counts[term] + 1.5 * (0.25 + 0.75 * length / average))
            for term, times in question_terms.items()
            if term in counts
        )
        assert dot(with_idf, encode_document(text, "en", average)) == pytest.approx(expected)


def test_a_text_without_terms_gives_an_empty_vector() -> None:
    assert encode_document("the of and", "en", 10.0) == SparseVector((), ())
    assert encode_question("?!") == SparseVector((), ())


def test_question_values_are_term_counts() -> None:
    vector = encode_question("pump pump valve", ["en"])
    found = dict(zip(vector.indices, vector.values, strict=True))
    assert found == {term_index("pump"): 2.0, term_index("valv"): 1.0}


def test_an_unclear_question_brings_every_languages_stem() -> None:
    vector = encode_question("Versicherungen", ["de", "en"])
    stems = {*index_terms("Versicherungen", "de"), *index_terms("Versicherungen", "en")}
    assert len(stems) == 2
    assert dict(zip(vector.indices, vector.values, strict=True)) == {
        term_index(stem): 1.0 for stem in stems
    }


def test_stop_words_tell_the_language_and_the_other_stems_count_less() -> None:
    vector = encode_question("Was kosten die Versicherungen", ["de", "en"])
    found = dict(zip(vector.indices, vector.values, strict=True))
    assert found[term_index(index_terms("Versicherungen", "de")[0])] == 1.0
    assert found[term_index(index_terms("Versicherungen", "en")[0])] == OTHER_LANGUAGE_WEIGHT
    assert term_index("die") not in found, "a German article, not an English verb"


def test_a_stop_word_of_another_language_is_kept() -> None:
    found = encode_question("Why did the plants die?", ["de", "en"]).indices
    assert term_index("die") in found


def test_a_question_in_another_language_than_the_index_says_still_finds_names() -> None:
    document = encode_document("Die Pumpe PX-200 öffnet bei 3,5 bar", "de", 8.0)
    assert dot(encode_question("When does the PX-200 open, at 3.5 bar?", ["en"]), document) > 0


def test_without_languages_any_language_is_understood() -> None:
    for text, language in [("Kündigungsfristen", "de"), ("насосы", "ru"), ("bombas", "es")]:
        document = encode_document(text, language, 1.0)
        assert set(encode_question(text).indices) >= set(document.indices)


@given(text=st.text(max_size=200), language=st.sampled_from(["en", "de", "zh", "th", "und", "xx"]))
def test_any_text_gives_a_well_formed_vector(text: str, language: str) -> None:
    for vector in (encode_document(text, language, 7.5), encode_question(text, [language])):
        assert len(vector.indices) == len(vector.values)
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= index < 2**32 for index in vector.indices)
        assert all(value > 0 for value in vector.values)


@given(text=st.text(max_size=200))
def test_a_text_finds_itself(text: str) -> None:
    document = encode_document(text, "en", 7.5)
    assert not document.indices or dot(encode_question(text, ["en"]), document) > 0


def test_term_indices_are_stable() -> None:
    assert (term_index("pump"), term_index("手机")) == (746596696, 274810014)
