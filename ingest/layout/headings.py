"""What kind of element a paragraph is: the outline first, then size and weight of the type.

Levels are 1 (a document's or chapter's title) to 6. They come from the outline, from a section
number, or from how much larger than the page's running text the heading is set.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from core.domain.pages import ElementKind
from ingest.layout.paragraphs import (
    CAPTION,
    ends_sentence,
    is_contents_entry,
    is_list_item,
    text_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ingest.layout.paragraphs import Paragraph
    from ingest.layout.rows import Row

_MAX_HEADING_CHARS = 200
_MAX_BOLD_CHARS = 120
_MAX_HEADING_ROWS = 4
_LARGER = 1.12  # times the running text
_LEVELS = ((1.7, 1), (1.3, 2), (_LARGER, 3))
BOLD_LEVEL = 3
MAX_LEVEL = 6
_SPARSE_CHARS = 300
_MIN_ENTRIES = 4
_SPARSE_BODY_SIZE = 12.0
_NUMBER = regex.compile(
    r"(?:(?:chapter|section|part|article|appendix|annex|kapitel|abschnitt|teil|artikel|anhang)\s+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,4}|[A-Z](?:\.\d{1,3}){0,4}|[IVXLC]{1,6})[.):]?\s+\p{L}",
    regex.IGNORECASE,
)
_SECTION_SIGN = regex.compile(r"§+ ?\d+\w?\s+\p{Lu}")
_NUMBERS = regex.compile(r"\S*\d\S*|[$€£%]")  # many of them: a row of a table
_LEADERS_END = regex.compile(r"\.\.\.\s*[\divxlc]{0,6}$")
_LEADERS = regex.compile(r"\.\.\.|…|\.\s*\d+$")


@dataclass(frozen=True, slots=True)
class PageStyle:
    """The running text of a page: its size and whether it is set in bold."""

    size: float
    is_bold: bool
    is_contents: bool = False  # a table of contents: its bold lines head nothing

    @classmethod
    def of(cls, rows: Sequence[Row]) -> PageStyle:
        """By the number of characters; a page with hardly any text is taken to be set in 12 point,
        unless it has a smaller size."""
        weights: Counter[tuple[float, bool]] = Counter()
        for row in rows:
            weights[round(row.size * 2) / 2, row.is_bold] += len(row.text)
        if not weights:
            return cls(_SPARSE_BODY_SIZE, is_bold=False)
        (size, is_bold), _ = weights.most_common(1)[0]
        is_contents = sum(bool(_LEADERS_END.search(row.text)) for row in rows) >= _MIN_ENTRIES
        if weights.total() < _SPARSE_CHARS and len({size for size, _ in weights}) == 1:
            return cls(min(size, _SPARSE_BODY_SIZE), is_bold=False)
        return cls(size, is_bold, is_contents)


def classify(
    paragraph: Paragraph, text: str, style: PageStyle, outline: Mapping[str, int]
) -> tuple[ElementKind, int]:
    """Kind and level (0 unless a heading). `outline` maps `text_key` of this page's outline titles
    to their levels. The level is provisional: `ingest.layout.levels` settles it."""
    if outline and len(text) <= _MAX_HEADING_CHARS:
        level = outline.get(text_key(text))
        if level is not None:
            return ElementKind.HEADING, min(level, MAX_LEVEL)
    if CAPTION.match(text) and len(text) < 400:
        return ElementKind.CAPTION, 0
    level = _heading_level(paragraph, text, style)
    if level and not (style.is_contents and level >= BOLD_LEVEL):
        return ElementKind.HEADING, level
    if is_list_item(text) or is_contents_entry(text):
        return ElementKind.LIST_ITEM, 0
    return ElementKind.PARAGRAPH, 0


def level_of(text: str, ratio: float) -> int:
    """The level of a heading set `ratio` times as large as the running text, by its section number
    if it has one; 0 when neither says anything."""
    by_size = next((level for least, level in _LEVELS if ratio >= least), 0)
    numbered = _NUMBER.match(text)
    if numbered and numbered["number"][0].isdigit() and by_size != 1:
        return min(2 + numbered["number"].count("."), MAX_LEVEL)
    return by_size


def _heading_level(paragraph: Paragraph, text: str, style: PageStyle) -> int:
    """0 for what is not a heading."""
    ratio = paragraph.size / style.size
    is_larger = ratio >= _LARGER
    stands_out = is_larger or (paragraph.is_bold and not style.is_bold and ratio > 0.9)
    if not stands_out or not _looks_like_heading(paragraph, text, is_larger=is_larger):
        return 0
    return level_of(text, ratio) or BOLD_LEVEL


def _looks_like_heading(paragraph: Paragraph, text: str, *, is_larger: bool) -> bool:
    if len(text) > (_MAX_HEADING_CHARS if is_larger else _MAX_BOLD_CHARS):
        return False
    if len(paragraph.rows) > _MAX_HEADING_ROWS or _LEADERS.search(text):
        return False
    if sum(char.isalpha() for char in text) < 2 or len(_NUMBERS.findall(text)) > 2:
        return False
    is_numbered = _NUMBER.match(text) or _SECTION_SIGN.match(text)
    if is_list_item(text) and not is_numbered:
        return False
    if text.endswith((",", ";")):
        return False
    return not (ends_sentence(text) and text.endswith(".")) or len(text) < 30
