"""A text as tokens: words, numbers and symbols, with what the checks need to know of each."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import regex

from core.lexical.analysis import is_stop_word, word_terms
from core.lexical.words import normal_form, words


class TokenKind(StrEnum):
    WORD = "word"  # begins with a letter; codes such as "PX-200" and "4.2.1" too
    NUMBER = "number"
    SYMBOL = "symbol"
    DATE = "date"  # of `dates`; its terms are its fields


@dataclass(frozen=True, slots=True)
class Token:
    """`text` as written, `normal` in the analyser's normal form; `terms` are its index terms, none
    for stop words, numbers and symbols. `start`, `end` in the prepared text."""

    kind: TokenKind
    text: str
    normal: str
    terms: tuple[str, ...]
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        return self.kind is TokenKind.WORD

    @property
    def is_number(self) -> bool:
        return self.kind is TokenKind.NUMBER

    @property
    def is_content(self) -> bool:
        return self.is_word and bool(self.terms)


def listed(text: str) -> tuple[str, ...]:
    """The words of a list."""
    return tuple(text.split())


_FRACTIONS = regex.compile(r"(?:(\d)\s?)?([½¼¾⅓⅔])")
_FRACTION_TEXT = {"½": ".5", "¼": ".25", "¾": ".75", "⅓": " 1/3", "⅔": " 2/3"}
_DASHES = regex.compile(r"[\u2010\u2011\u2012\u2013\u2014\u2212]")
_SPACES = regex.compile(r"[^\S\n]+")
_INVISIBLE = regex.compile(r"[\u00AD\u200B-\u200F\u2060\uFEFF]")

_TOKEN = regex.compile(
    r"(?P<code>\d+(?:\.\d+){2,}(?!\d)|(?!\d+[ckm]?m[23]\b)\d+\p{L}+\d+[\p{L}\d]*)"
    r"|(?P<number>\d{1,3}(?:([,.'’ ])\d{3}(?!\d))(?:\3\d{3}(?!\d))*(?:(?!\3)[.,]\d+)?"
    r"|\d+(?:[.,]\d+)?|(?<![\w.])\.\d+)"
    r"|(?P<word>\p{L}[\p{L}\p{M}\p{N}]*(?:\.(?:\p{L}\.?)+(?!\p{L})|[-'’&/][\p{L}\p{M}\p{N}]+)*)"
    r"|(?P<symbol>°\s?[CFK]\b|[<>]=|\S)"
)


def prepare(text: str) -> str:
    """One spelling of dashes, spaces, fractions and compatibility characters."""
    text = _FRACTIONS.sub(_spell_fraction, text)
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)))
    return _SPACES.sub(" ", text)


def tokenize(prepared: str, language: str) -> list[Token]:
    """The tokens of a prepared text in order."""
    return [_token(match, language) for match in _TOKEN.finditer(prepared)]


def _spell_fraction(match: regex.Match[str]) -> str:
    spelled = _FRACTION_TEXT[match[2]]
    if not match[1] and spelled.startswith("."):
        return f"0{spelled}"
    return f"{match[1]}{spelled}" if match[1] else spelled.strip()


def _token(match: regex.Match[str], language: str) -> Token:
    text = match[0]
    if match["number"]:
        return Token(TokenKind.NUMBER, text, text, (), *match.span())
    if match["symbol"]:
        return Token(TokenKind.SYMBOL, text, text, (), *match.span())
    normal = normal_form(text)
    return Token(TokenKind.WORD, text, normal, terms_of_word(normal, language), *match.span())


@lru_cache(maxsize=1 << 14)
def terms_of_word(normal: str, language: str) -> tuple[str, ...]:
    """Index terms of a word; none for a stop word, whatever its joints ("don't", "it's")."""
    bare = normal.removesuffix("'s").removesuffix("’s")
    if not bare or is_stop_word(bare, language) or bare.endswith(("n't", "n’t")):
        return ()
    return tuple(term for word in words(bare) for term in word_terms(word, language))
