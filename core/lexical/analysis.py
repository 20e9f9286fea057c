"""The ONE analyser: text and its language to index terms, the same for documents and questions.

Words are stemmed by Snowball for the document's language and lose its stop words; accents go after
stemming (before it in English). A word whose script is not the document's (an English name in a
Chinese report, an unknown language) is stemmed by that script's default language, so that only
languages that share a script can disagree about a word.
"""

from __future__ import annotations

import threading
import unicodedata
from functools import lru_cache

import regex
import Stemmer

from core.lexical.stop_words import STOP_WORDS
from core.lexical.words import grams, is_unspaced, normal_form, pieces, segments, words

UNKNOWN_LANGUAGE = "und"

# ISO 639-1 -> Snowball algorithm.
_STEMMERS: dict[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_SAME_STOP_WORDS = {"nb": "no", "nn": "no"}

# Script of a word -> (default language, languages written in it). Latin is everything else.
_SCRIPT = regex.compile(
    r"(?P<latin>\p{Latin})|(?P<cyrillic>\p{Cyrillic})|(?P<greek>\p{Greek})|(?P<arabic>\p{Arabic})"
    r"|(?P<devanagari>\p{Devanagari})|(?P<hebrew>\p{Hebrew})|(?P<armenian>\p{Armenian})"
    r"|(?P<tamil>\p{Tamil})"
)
SCRIPT_LANGUAGES: dict[str, tuple[str, frozenset[str]]] = {
    "cyrillic": ("ru", frozenset({"be", "bg", "kk", "ky", "mk", "mn", "ru", "sr", "tg", "uk"})),
    "greek": ("el", frozenset({"el"})),
    "arabic": ("ar", frozenset({"ar", "fa", "ku", "ps", "ug", "ur"})),
    "devanagari": ("hi", frozenset({"hi", "mr", "ne"})),
    "hebrew": ("he", frozenset({"he", "yi"})),
    "armenian": ("hy", frozenset({"hy"})),
    "tamil": ("ta", frozenset({"ta"})),
}
_NOT_LATIN = frozenset().union(*(languages for _, languages in SCRIPT_LANGUAGES.values())) | {
    UNKNOWN_LANGUAGE, "am", "bn", "gu", "ja", "ka", "km", "kn", "ko", "lo", "ml", "my", "or", "pa",
    "si", "te", "th", "zh",
}  # fmt: skip

_stemmers = threading.local()  # Snowball stemmers may not be shared by threads


def index_terms(text: str, language: str) -> list[str]:
    """All index terms of a text in order, repeats included. `language` is ISO 639-1 or `und`."""
    found: list[str] = []
    for word in words(normal_form(text)):
        found.extend(word_terms(word, language))
    return found


@lru_cache(maxsize=1 << 15)
def word_terms(word: str, language: str) -> tuple[str, ...]:
    """The terms of one word in normal form; empty for a stop word of the language."""
    runs, joined = pieces(word)
    terms = [term for run in runs for term in _run_terms(run, language)]
    if joined is not None:
        terms.append(_stem(joined, language))
    return tuple(terms)


def is_stop_word(word: str, language: str) -> bool:
    """Whether the language drops this word (in normal form)."""
    return word in _stop_words(language_of(word, language))


def _run_terms(run: str, language: str) -> tuple[str, ...]:
    if is_unspaced(run):
        return tuple(
            term
            for kind, text in segments(run)
            for term in (_run_terms(text, language) if kind == "word" else grams(kind, text))
        )
    return () if is_stop_word(run, language) else (_stem(run, language),)


def _stop_words(language: str) -> frozenset[str]:
    return STOP_WORDS.get(_SAME_STOP_WORDS.get(language, language), frozenset())


def language_of(word: str, language: str) -> str:
    """The language whose rules apply to a word (in normal form): the document's if it is written
    in that script, else the script's default."""
    match = None if word.isascii() else _SCRIPT.search(word)
    script = "latin" if match is None else str(match.lastgroup)
    if script == "latin":
        return "en" if language in _NOT_LATIN else language
    default, languages = SCRIPT_LANGUAGES[script]
    return language if language in languages else default


def _stem(word: str, language: str) -> str:
    if word.isascii() and word[0].isdecimal():
        return word
    algorithm = _STEMMERS.get(language_of(word, language))
    if algorithm == "english" and not word.isascii():
        word = _without_accents(word)  # its vowels are a to y: "résumés" would keep its s
    stemmed = word if algorithm is None else _stemmer(algorithm).stemWord(word)
    return stemmed if stemmed.isascii() else _without_accents(stemmed)


def _stemmer(algorithm: str) -> Stemmer.Stemmer:
    found: dict[str, Stemmer.Stemmer] = _stemmers.__dict__
    if algorithm not in found:
        found[algorithm] = Stemmer.Stemmer(algorithm, 0)  # no cache of its own: word_terms has one
    return found[algorithm]


def _without_accents(word: str) -> str:
    """Latin and Greek letters without their marks; other scripts need theirs."""
    match = _SCRIPT.search(word)
    if match is not None and match.lastgroup not in {"latin", "greek"}:
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if not unicodedata.combining(c))
    )
