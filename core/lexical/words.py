"""From text to words: normal form, runs, compounds, and which script a run belongs to.

A word is a run of letters, digits and combining marks; without the marks, Hindi and its relatives
fall apart. Chinese, Japanese and Korean have no spaces to trust, so their runs become overlapping
pieces, as do those of Thai and its neighbours.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

# Invisible characters that stand inside words: soft hyphen, joiners, direction marks.
_INVISIBLE = regex.compile(r"[\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]")
_ZWNJ_IN_ARABIC = regex.compile(r"(?<=\p{Arabic})\u200C")
# NFKC would glue these to the word before: "Foo™", "word²" (a footnote), "6½".
_MARKS = regex.compile(r"[™®©℠]|(?<=\p{L}{3})[¹²³⁰-⁹]+|(?<=\p{N})(?=[¼-¾⅐-⅞])")

_RUN = r"[\p{L}\p{N}\p{M}]+"
_JOINT = r"[-\u2010\u2011.,/:'’·&\u2044]"
_WORD = regex.compile(rf"{_RUN}(?:{_JOINT}{_RUN})*")
_SPLIT = regex.compile(_JOINT)
_ALNUM_EDGE = regex.compile(r"(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})")

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}ー々〆"
_SEA = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_UNSPACED = regex.compile(rf"[{_CJK}{_SEA}\p{{Hangul}}]")
_SEGMENT = regex.compile(
    rf"(?P<cjk>[{_CJK}]+)|(?P<hangul>\p{{Hangul}}+)|(?P<sea>[{_SEA}]+)"
    rf"|(?P<word>[^{_CJK}{_SEA}\p{{Hangul}}]+)"
)

_GROUPED = regex.compile(r"\d{1,3}(?:([.,'’])\d{3})(?:\1\d{3})*(?:(?!\1)[.,](\d+))?")
_HYPHENS = frozenset("-\u2010\u2011&")
_CODE_JOINTS = _HYPHENS | frozenset("./")
_MAX_PIECES = 6
_MAX_JOINED_CHARS = 40


def normal_form(text: str) -> str:
    """NFKC, casefolded, without invisible characters. Offsets are not kept."""
    if text.isascii():
        return text.lower()
    text = _INVISIBLE.sub("", _ZWNJ_IN_ARABIC.sub(" ", text))
    folded = unicodedata.normalize("NFKC", _MARKS.sub(" ", text)).casefold()
    return unicodedata.normalize("NFKC", folded).replace("i\u0307", "i")


def words(normalised: str) -> Iterator[str]:
    """Words of a text in normal form, compounds ("px-200", "1,250") still in one piece."""
    for match in _WORD.finditer(normalised):
        yield match[0]


def pieces(word: str) -> tuple[tuple[str, ...], str | None]:
    """The runs of a word, and what the whole word is called when that differs from its one run.

    "px-200" -> (px, 200), px200; "1,250.50" -> (1, 250, 50), 1250.50; "u.s.a" -> (), usa;
    "well-known" -> (well, known), wellknown; "company's" -> (company, s), None.
    """
    runs = tuple(_SPLIT.split(word))
    joints = set(_SPLIT.findall(word))
    if len(runs) == 1:
        return _edges(word)
    if len(runs) > _MAX_PIECES or len(word) > _MAX_JOINED_CHARS:
        return runs, None
    if any(run.isdecimal() for run in runs) and all(run[0].isdecimal() for run in runs):
        return runs, _number(word, runs)
    if "." in word and all(len(run) == 1 for run in runs):
        return (), "".join(runs)
    if any(character.isdecimal() for character in word):
        return runs, "".join(runs) if _CODE_JOINTS.issuperset(joints) else None
    return runs, "".join(runs) if _HYPHENS.issuperset(joints) and len(runs) <= 3 else None


def _edges(run: str) -> tuple[tuple[str, ...], str | None]:
    """ "px200" is also px and 200, since people write "PX 200"; tiny and longer mixtures ("m2",
    "a1b2c3") stay whole."""
    if run.isalpha() or run.isdecimal():
        return (run,), None
    parts = tuple(_ALNUM_EDGE.split(run))
    if len(parts) == 2 and len(run) > 2:
        return parts, run
    return (run,), None


def _number(word: str, runs: tuple[str, ...]) -> str:
    """One spelling of a number: no thousands separators, a point before decimals."""
    grouped = _GROUPED.fullmatch(word)
    if grouped is None:
        return ".".join(runs)
    decimals = grouped[2]
    whole = runs[:-1] if decimals else runs
    return "".join(whole) + (f".{decimals}" if decimals else "")


def is_unspaced(run: str) -> bool:
    """Whether any of it is in a script written without spaces (or with unreliable ones)."""
    return not run.isascii() and _UNSPACED.search(run) is not None


def segments(run: str) -> Iterator[tuple[str, str]]:
    """(kind, text) with kind cjk, hangul, sea or word, in order."""
    for match in _SEGMENT.finditer(run):
        yield str(match.lastgroup), match[0]


def grams(kind: str, text: str) -> Iterator[str]:
    """Index terms of an unspaced segment: characters and pairs for CJK, triples for Thai and its
    neighbours, the spaced word and its pairs for Korean."""
    if kind == "sea":
        yield from (text[i : i + 3] for i in range(max(1, len(text) - 2)))
        return
    if kind == "hangul":
        yield text
        if len(text) > 2:
            yield from (text[i : i + 2] for i in range(len(text) - 1))
        return
    yield from text
    yield from (text[i : i + 2] for i in range(len(text) - 1))
