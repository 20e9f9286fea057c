"""Clean text with the way back: each kept code point knows which one it came from.

One cleaning for everything that enters from a file, done once at the boundary: printed lines (with
an offset map, so that a quote leads back to the glyphs) and metadata (without one).

What is done, in this order: presentation forms to plain letters (NFKC for U+FB00-FDFF and
U+FE70-FEFC only: ligatures and Arabic or Hebrew shapes, never exponents or fractions); canonical
composition (NFC) a grapheme at a time; control, bidi-control, zero-width, unassigned-on-purpose and
surrogate code points dropped; bullets of symbol fonts to a real bullet; all white space to single
spaces, none at the ends; leaders to three dots, or to a space where they have no value.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Sequence

_GRAPHEME = regex.compile(r"\X")
_SPACES = regex.compile(r"\s+")
_NEEDS_WORK_ASCII = re.compile(r"  |\.\s?\.\s?\.\s?\.\s?\.|________")
# What a line without any of needs no work, given that it is NFC: most lines.
_NEEDS_WORK = regex.compile(
    r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufb00-\ufdff\ufe70-\ufefc\p{Co}\ufffd-\uffff]"
    r"|[\p{Zs}--\ ]|  |^ | $|\.\s?\.\s?\.\s?\.\s?\.|………|________",
    flags=regex.V1,
)
_PRESENTATION = regex.compile(r"[\ufb00-\ufdff\ufe70-\ufefc]")
# Bullets of symbol fonts, as word processors write them.
LEGACY_BULLETS = "\uf0a7\uf0b7\uf076\uf0a8\uf06e\uf06c\uf0d8\uf0fc"
# Runs of characters without a value: leaders between a title and its page number, in some fonts.
LEADERS = regex.compile(r"\ufffd(?:\s?\ufffd){3,}|(\p{Co})(?:\s?\1){3,}")
# Leaders of dots: three are as good as a hundred, and cost no tokens.
_DOTS = regex.compile(r"(?:\.\s?){5,}|(?:…\s?){3,}|_{8,}")
# Kept although they are of category Cf: joiners that Persian and Indic spelling needs.
_JOINERS = frozenset("\u200c\u200d")
_SOFT_HYPHEN = "\u00ad"


@dataclass(frozen=True, slots=True)
class Normalized:
    """`text[i]` stems from `raw[origins[i]]`; `origins` is None when they are equal."""

    text: str
    origins: Sequence[int] | None = None
    num_dropped: int = 0  # control and other unprintable code points

    def origin(self, index: int) -> int:
        return index if self.origins is None else self.origins[index]


def normalize(raw: str) -> Normalized:
    """Clean one printed line. A soft hyphen at its end becomes a hyphen; elsewhere it goes."""
    stripped = raw.strip()
    if _is_clean(stripped):
        if len(stripped) == len(raw):
            return Normalized(raw)
        start = len(raw) - len(raw.lstrip())
        return Normalized(stripped, range(start, start + len(stripped)))
    pieces: list[str] = []
    origins: list[int] = []
    num_dropped = 0
    blanks = {place for run in LEADERS.finditer(raw) for place in range(*run.span())}
    blanks |= {place for run in _DOTS.finditer(raw) for place in range(run.start() + 3, run.end())}
    for cluster in _GRAPHEME.finditer(raw):
        cleaned = " " if cluster.start() in blanks else _clean_cluster(cluster[0])
        if not cleaned:
            num_dropped += cluster[0] not in ("\u200b", "\ufeff", _SOFT_HYPHEN)
            continue
        if cleaned == " " and (not pieces or pieces[-1] == " "):
            continue
        pieces.extend(cleaned)
        # Code points that the cleaning kept one to one keep their own place in the cluster.
        step = 1 if len(cleaned) == len(cluster[0]) else 0
        origins.extend(cluster.start() + step * place for place in range(len(cleaned)))
    if pieces and pieces[-1] == " ":
        pieces.pop()
        origins.pop()
    if pieces and raw.rstrip().endswith(_SOFT_HYPHEN):
        pieces.append(_SOFT_HYPHEN)
        origins.append(len(raw.rstrip()) - 1)
    text = "".join(pieces)
    return Normalized(text, None if text == raw else tuple(origins), num_dropped)


def _is_clean(text: str) -> bool:
    """Whether nothing is left to do: so for most lines, and at once for those in ASCII."""
    if text.isascii():
        return text.isprintable() and not _NEEDS_WORK_ASCII.search(text)
    return not _NEEDS_WORK.search(text) and unicodedata.is_normalized("NFC", text)


def clean_text(raw: str, *, max_chars: int) -> str:
    """A title, heading or metadata value: cleaned as a line is, and cut at `max_chars`."""
    return normalize(raw[: 4 * max_chars]).text.rstrip(_SOFT_HYPHEN)[:max_chars].rstrip()


def ends_with_soft_hyphen(text: str) -> bool:
    return text.endswith(_SOFT_HYPHEN)


def _clean_cluster(cluster: str) -> str:
    """One grapheme, cleaned: possibly empty, or a single space for white space."""
    if _PRESENTATION.search(cluster):
        cluster = "".join(
            unicodedata.normalize("NFKC", char) if _PRESENTATION.match(char) else char
            for char in cluster
        )
    kept = "".join(_clean_char(char) for char in unicodedata.normalize("NFC", cluster))
    if _SPACES.fullmatch(kept):
        return " "
    return _SPACES.sub(" ", kept)


def _clean_char(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    if char in LEGACY_BULLETS:
        return "\u2022"
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    if category in ("Cc", "Cs") or (category == "Cf" and char not in _JOINERS):
        return ""
    if category == "Cn" and (ord(char) & 0xFFFE) == 0xFFFE:
        return ""
    return char
