"""What a question asks for: its content words, names and numbers, and the kind of answer it wants.

Everything here is lexical and cheap; no model.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import regex

from core.domain.search import SparseVector
from core.lexical.analysis import is_stop_word, word_terms
from core.lexical.bm25 import encode_question
from core.lexical.stop_words import STOP_WORDS
from core.lexical.words import normal_form, words
from query.retrieval.answer_kinds import AnswerKind, answer_kind


class WordKind(StrEnum):
    PLAIN = "plain"
    NAME = "name"  # capitalised inside a sentence, an acronym, or a code such as PX-200
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A content word in normal form (core.lexical)."""

    text: str
    kind: WordKind


@dataclass(frozen=True, slots=True)
class Question:
    """`languages` are those it may be written in, by its stop words; none when unclear.

    `focus` is the question without its names and numbers: what is asked about them.
    """

    text: str
    focus: str
    words: tuple[QuestionWord, ...]
    languages: tuple[str, ...]
    kind: AnswerKind

    @property
    def names(self) -> tuple[QuestionWord, ...]:
        """Names, codes and numbers: what evidence has to mention literally."""
        return tuple(word for word in self.words if word.kind is not WordKind.PLAIN)


_SHAPELESS = regex.compile(r"^[\W_]*$")
_SENTENCE_END = regex.compile(r"[.!?:;]$")
_ACRONYM = regex.compile(r"^\P{L}*(?=(?:\P{Lu}*\p{Lu}){2})[\p{Lu}\p{N}&.\-/]+\P{L}*$")
_CAPITALISED = regex.compile(r"^\P{L}*\p{Lu}")
_HAS_DIGIT = regex.compile(r"\p{N}")
_HAS_LETTER = regex.compile(r"\p{L}")
# Where nouns are capitalised a capital says nothing.
_CAPITAL_NOUNS = frozenset({"de", "lb"})
# The one English word that is always capitalised: "I", "I'm", "I'll".
_PRONOUN = regex.compile(r"^\P{L}*I(?:['’]\p{L}+)?\P{L}*$")
# Neither do capitals in a question that is all in Title Case or upper case.
_SHOUTING = 0.7


def analyse(text: str) -> Question:
    """The question's content words (distinct, in order), names, numbers, languages and kind."""
    languages = question_languages(text)
    kind, without_asking = answer_kind(text)
    found = _content_words(without_asking, languages)
    named = {word.text for word in found if word.kind is not WordKind.PLAIN}
    return Question(text, _without(text, named), found, languages, kind)


def question_languages(text: str) -> tuple[str, ...]:
    """The languages in which the most words are stop words; none when no word is one."""
    spoken = list(words(normal_form(text)))
    hits = {
        language: sum(word in stop_words for word in spoken)
        for language, stop_words in STOP_WORDS.items()
    }
    most = max(hits.values())
    return tuple(sorted(name for name, count in hits.items() if count == most and most > 0))


def encode(question: Question) -> SparseVector:
    """The question's lexical vector. A question is too short to tell its language reliably, and
    names may stand in a document of any, so its words bring their stem in each language."""
    return encode_question(question.text)


def share_found(word: QuestionWord, terms: Collection[str], language: str) -> float:
    """How much of a question's word a text has, 0 to 1, given the text's terms and its language.

    A compound ("px-200") counts whole when its joined form is there, else by its pieces.
    """
    wanted = word_terms(word.text, language) or word_terms(word.text, "und")
    if not wanted:
        return 0.0
    if wanted[-1] in terms:
        return 1.0
    return sum(term in terms for term in wanted) / len(wanted)


def _without(text: str, named: Collection[str]) -> str:
    """The text without the tokens that are nothing but these words; as it is if nothing is left."""
    kept = [
        token
        for token in text.split()
        if not (spoken := set(words(normal_form(token)))) or not spoken.issubset(named)
    ]
    return " ".join(kept) if any(not _SHAPELESS.match(token) for token in kept) else text


def _content_words(text: str, languages: tuple[str, ...]) -> tuple[QuestionWord, ...]:
    tokens = [token for token in text.split() if not _SHAPELESS.match(token)]
    num_capitals = sum(_CAPITALISED.match(token) is not None for token in tokens[1:])
    is_shouting = len(tokens) > 2 and num_capitals >= _SHOUTING * len(tokens[1:])
    capitals_mean_names = bool(languages) and not _CAPITAL_NOUNS.intersection(languages)
    found: dict[str, WordKind] = {}
    starts_sentence = True
    for token in tokens:
        kind = _word_kind(
            token,
            may_be_acronym=not is_shouting,
            may_be_name=capitals_mean_names and not is_shouting and not starts_sentence,
        )
        for word in words(normal_form(token)):
            # Also in names: "Doctor Who" is known by its doctor.
            if any(is_stop_word(word, name) for name in languages):
                continue
            found.setdefault(word, kind)
        starts_sentence = _SENTENCE_END.search(token) is not None
    return tuple(QuestionWord(word, kind) for word, kind in found.items())


def _word_kind(token: str, *, may_be_acronym: bool, may_be_name: bool) -> WordKind:
    if _HAS_DIGIT.search(token):
        return WordKind.NAME if _HAS_LETTER.search(token) else WordKind.NUMBER
    if may_be_acronym and _ACRONYM.match(token):
        return WordKind.NAME
    if may_be_name and _CAPITALISED.match(token) and not _PRONOUN.match(token):
        return WordKind.NAME
    return WordKind.PLAIN
