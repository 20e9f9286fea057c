"""Whether a page's characters can be read at all: fonts without a map to Unicode give junk.

Thresholds as measured over 1,901 public files: over 30 % of bad characters the page needs OCR,
over 5 % it is suspect (ragflow PR 13404 uses the same 30 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from ingest.normalize import LEADERS, LEGACY_BULLETS

if TYPE_CHECKING:
    from collections.abc import Sequence

GARBAGE_SHARE = 0.30
SUSPECT_SHARE = 0.05
_BAD = regex.compile(rf"[\ufffd\p{{Co}}\p{{Cc}}--[\t\n\r{LEGACY_BULLETS}]]", flags=regex.V1)
_VOWELS = "aeiouy"
_MIN_LETTERS = 100
_MAX_VOWEL_SHARE = 0.25
_MIN_FREQUENT = 3
_FREQUENT_WORDS = frozenset(
    {"the", "of", "and", "to", "in", "is", "for", "that", "with", "der", "die", "und", "den", "von"}
    | {"le", "la", "les", "de", "des", "et", "en", "du", "el", "los", "que", "y", "di", "il", "che"}
)


@dataclass(frozen=True, slots=True)
class Readability:
    """`bad_share` of the characters that are not white space; `is_garbage`: do not index."""

    bad_share: float
    is_garbage: bool


def measure(lines: Sequence[str]) -> Readability:
    """Judge the raw lines of one page."""
    joined = "\n".join(lines)
    if joined.isascii() and joined.isprintable():
        return Readability(0.0, is_garbage=False)
    if not _BAD.search(joined):
        return Readability(0.0, is_garbage=False)
    bad, total = _count(joined)
    if total and bad / total > GARBAGE_SHARE:
        # Leaders between a title and its page number have no Unicode value in some fonts. They are
        # leaders only where most else can be read.
        without_bad, without_total = _count(LEADERS.sub("", joined))
        if without_total * 2 > total:
            bad, total = without_bad, without_total
    share = bad / total if total else 0.0
    return Readability(share, is_garbage=total > 0 and share > GARBAGE_SHARE)


def is_shifted(lines: Sequence[str]) -> bool:
    """Whether these are numbers of glyphs taken for letters: "SDU OH GRFXPHQWDLUH" for "par le
    documentaire". Fonts number their glyphs from the blank, which is 29 below its code."""
    words = [word for line in lines for word in line.split()]
    letters = "".join(word for word in words if word.isalpha()).lower()
    if len(letters) < _MIN_LETTERS:
        return False
    if sum(map(letters.count, _VOWELS)) >= _MAX_VOWEL_SHARE * len(letters):
        return False
    meant = {"".join(chr(ord(char) + 29) for char in word) for word in words if len(word) < 6}
    return len(meant & _FREQUENT_WORDS) >= _MIN_FREQUENT


def _count(text: str) -> tuple[int, int]:
    return len(_BAD.findall(text)), sum(not char.isspace() for char in text)
