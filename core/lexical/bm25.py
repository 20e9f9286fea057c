"""BM25 as sparse vectors, exactly Lucene's when the index multiplies by IDF.

A document's value for a term is f(k1+1) / (f + k1(1 - b + b * length/average)), a question's is the
term's count, and the index's modifier is IDF = ln(1 + (N - n + .5)/(n + .5)): their dot product is
BM25 (Robertson & Zaragoza 2009) with Lucene's IDF. `average` must be the real mean length of what
is indexed; it is kept in the index's manifest.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from core.domain.search import SparseVector
from core.lexical.analysis import index_terms, is_stop_word, language_of, word_terms
from core.lexical.stop_words import STOP_WORDS
from core.lexical.words import normal_form, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

K1 = 1.5
B = 0.75
OTHER_LANGUAGE_WEIGHT = 0.25
# Raised by hand whenever the same text would give other terms: part of every index's manifest.
ANALYSER_VERSION = 1


@lru_cache(maxsize=1)
def analyser_fingerprint() -> str:
    """What decides the terms of a text: our rules and lists, Snowball's and Unicode's. 16 hex."""
    lists = sorted((language, sorted(listed)) for language, listed in STOP_WORDS.items())
    parts = (ANALYSER_VERSION, version("PyStemmer"), unicodedata.unidata_version, K1, B, lists)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def count_terms(text: str, language: str) -> int:
    """The length of a text as BM25 measures it."""
    return len(index_terms(text, language))


def encode_document(text: str, language: str, average_terms: float) -> SparseVector:
    """BM25 values of a text. Empty (no indices) for a text without terms.

    Args:
        text: what is indexed (title and heading path included).
        language: ISO 639-1, or `und`.
        average_terms: mean `count_terms` over the index, above 0.
    """
    terms = index_terms(text, language)
    penalty = K1 * (1 - B + B * len(terms) / average_terms)
    counts = Counter(terms)
    return _vector(
        (term_index(term), count * (K1 + 1) / (count + penalty)) for term, count in counts.items()
    )


def encode_question(text: str, languages: Collection[str] = ()) -> SparseVector:
    """Term counts of a question against an index that holds documents in `languages`.

    A question is too short to tell its language reliably, so each word brings its stem in every
    language of the index that shares its script. The languages in which the question has the most
    stop words decide which words are dropped; stems that only the other languages give count
    OTHER_LANGUAGE_WEIGHT (measured on a pool of five languages: within .002 nDCG@10 of knowing the
    language). Without `languages`, all that have stop words are considered (within .003).
    """
    candidates = sorted(set(languages)) or sorted(STOP_WORDS)
    question_words = list(words(normal_form(text)))
    likely = _likely_languages(question_words, candidates)
    weights: dict[str, float] = {}
    for word in question_words:
        spoken = {language_of(word, language) for language in candidates}
        preferred = spoken & likely or spoken
        if any(is_stop_word(word, language) for language in spoken & likely):
            continue
        terms = {term: OTHER_LANGUAGE_WEIGHT for lang in spoken for term in word_terms(word, lang)}
        terms |= {term: 1.0 for lang in preferred for term in word_terms(word, lang)}
        for term, weight in terms.items():
            weights[term] = weights.get(term, 0.0) + weight
    return _vector((term_index(term), weight) for term, weight in weights.items())


def _likely_languages(question_words: list[str], candidates: list[str]) -> set[str]:
    """The languages in which the most words are stop words; none when no word is one."""
    hits: Counter[str] = Counter()
    for word in question_words:
        spoken = {language_of(word, language) for language in candidates}
        hits.update(language for language in spoken if is_stop_word(word, language))
    most = max(hits.values(), default=0)
    return {language for language, count in hits.items() if count == most}


@lru_cache(maxsize=1 << 16)
def term_index(term: str) -> int:
    """A stable unsigned 32 bit number of a term. Two terms may share one (1 in 4 billion)."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=4).digest(), "big")


def _vector(pairs: Iterable[tuple[int, float]]) -> SparseVector:
    """Distinct indices in ascending order; the values of colliding terms are summed."""
    values: dict[int, float] = {}
    for index, weight in pairs:
        values[index] = values.get(index, 0.0) + weight
    indices = tuple(sorted(values))
    return SparseVector(indices, tuple(values[index] for index in indices))
