"""What stands between two printed lines of one text: a space, or nothing after a parted word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import regex

from ingest.normalize import ends_with_soft_hyphen

if TYPE_CHECKING:
    from collections.abc import Container

_PARTED = regex.compile(r"([\p{L}\p{M}\p{N}'’.–-]*\p{L})[-\u2010]$")
_WORD_START = regex.compile(r"\p{Ll}[\p{L}\p{M}'’-]*")
# After these a hyphen at a line's end belongs to the word.
_PREFIXES = frozenset(
    {"self", "well", "non", "ex", "cross", "high", "low", "long", "short", "half", "all", "full"}
    | {"part", "semi", "anti", "quasi", "vice"}
)
# "Ein- und Ausgang": the second word stands alone.
_CONJUNCTIONS = frozenset({"and", "or", "und", "oder", "bzw", "et", "ou", "y", "o", "e"})
_UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}"
    r"\p{Script=Khmer}\p{Script=Myanmar}\u3000-\u303f\uff00-\uffef]"
)


def join_of(line: str, following: str, words: Container[str]) -> tuple[int, str]:
    """How many characters to cut off `line`, and what to put before `following`.

    A hyphen before a lower-case letter parts a word, and goes; it stays where the word is spelled
    with it: after a prefix or a part with digits or capitals, or when `words` (the page's) hold the
    spelling with a hyphen and not the one without.
    """
    if ends_with_soft_hyphen(line):
        return 1, ""
    if not following:
        return 0, ""
    if _UNSPACED.match(line[-1:]) and _UNSPACED.match(following[:1]):
        return 0, ""
    parted = _PARTED.search(line)
    if parted is None:
        return (0, "") if line.endswith("-") and _is_compound(line) else (0, " ")
    begun = _WORD_START.match(following)
    left = parted[1]
    if begun is None:
        # "PX-" + "200", "Müller-" + "Meier": one word, spelled with its hyphen.
        starts_word = following[:1].isalnum()
        return (0, "") if starts_word else (0, " ")
    right = begun[0]
    if right.casefold() in _CONJUNCTIONS:
        return 0, " "
    if _keeps_hyphen(left, right, words):
        return 0, ""
    return 1, ""


def _is_compound(line: str) -> bool:
    """A hyphen after a digit ("2-" + "year"), not a dash after a blank."""
    return line[-2:-1].isalnum()


def _keeps_hyphen(left: str, right: str, words: Container[str]) -> bool:
    if left.casefold() in _PREFIXES or "-" in left:
        return True
    if any(char.isdigit() for char in left) or (len(left) > 1 and left.isupper()):
        return True
    return f"{left}-{right}" in words and f"{left}{right}" not in words
