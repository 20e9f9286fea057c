"""Rows to paragraphs: which printed row goes on with the one before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingest.layout.rows import MARKER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.layout.rows import Row
    from ingest.layout.tables import Table

CAPTION = re.compile(
    r"(?:Fig(?:ure|\.)?|Tab(?:le|elle|leau|\.)|Abb(?:ildung|\.)|Chart|Exhibit|Graphique)"
    r"\s*[\dA-Z][\d.–-]*\s*[:.–—-]?",
)
_TERMINALS = frozenset(".!?:;。！？：…؟۔।")
_CLOSERS = "\"'”’»)]"
_OPENERS = "\"'“‘«(["
_CONTENTS_ENTRY = re.compile(r"\.\.\.\s*[\divxlcIVXLC]{1,6}$")
_MAX_LEADING = 2.1  # times the font size, inside a paragraph
_CONTINUED_LEADING = 3.2
_INDENT = 0.9  # times the font size
_HANGING = 6.0


@dataclass(slots=True)
class Paragraph:
    """Rows that read as one text."""

    rows: list[Row]

    @property
    def size(self) -> float:
        return max(self.rows, key=lambda row: len(row.text)).size

    @property
    def is_bold(self) -> bool:
        return all(row.is_bold for row in self.rows)


def group_paragraphs(
    parts: Sequence[Row | Table], heading_keys: frozenset[str] = frozenset()
) -> list[Paragraph | Table]:
    """Paragraphs and tables in the same order. `heading_keys` are outline titles of this page, as
    `text_key` makes them: a row that is one stands alone."""
    from ingest.layout.rows import Row

    result: list[Paragraph | Table] = []
    for part in parts:
        if not isinstance(part, Row):
            result.append(part)
            continue
        last = result[-1] if result else None
        if isinstance(last, Paragraph):
            is_title = bool(heading_keys) and (
                text_key(part.text) in heading_keys or text_key(last.rows[-1].text) in heading_keys
            )
            if not is_title and _goes_on(last, part):
                last.rows.append(part)
                continue
        result.append(Paragraph([part]))
    return result


def text_key(text: str) -> str:
    """Letters and digits only, case folded: how a title is compared with what is printed."""
    return "".join(char for char in text.casefold() if char.isalnum())


def is_list_item(text: str) -> bool:
    return MARKER.match(text) is not None


def is_contents_entry(text: str) -> bool:
    """A line of a table of contents: title, leaders, page number."""
    return _CONTENTS_ENTRY.search(text) is not None


def ends_sentence(text: str) -> bool:
    return text.rstrip(_CLOSERS)[-1:] in _TERMINALS


def starts_lower(text: str) -> bool:
    return text.lstrip(_OPENERS)[:1].islower()


def _goes_on(paragraph: Paragraph, row: Row) -> bool:
    last = paragraph.rows[-1]
    if row.angle != last.angle or _differs_in_style(paragraph, row):
        return False
    if is_list_item(row.text) or is_contents_entry(last.text):
        return False
    is_open = not ends_sentence(last.text) and starts_lower(row.text)
    leading = row.base - last.base
    if leading <= 0:  # further up: the next column
        return is_open
    if leading > (_CONTINUED_LEADING if is_open else _MAX_LEADING) * row.size:
        return False
    if len(paragraph.rows) > 1 and not is_open:
        usual = (last.base - paragraph.rows[0].base) / (len(paragraph.rows) - 1)
        if leading > 1.3 * usual + 0.5:
            return False
    if row.box[2] <= last.box[0] or row.box[0] >= last.box[2]:
        return is_open
    return is_open or not _starts_anew(paragraph, row)


def _differs_in_style(paragraph: Paragraph, row: Row) -> bool:
    """Another size, or bold beside plain: a heading and its text, or a title and its subtitle."""
    size = paragraph.size
    if abs(row.size - size) > 0.12 * max(row.size, size):
        return True
    return (
        len(paragraph.rows) == 1
        and row.is_bold != paragraph.is_bold
        and not (starts_lower(row.text))
    )


def _starts_anew(paragraph: Paragraph, row: Row) -> bool:
    """By the shape: an indented first line, one after a hanging line, or after a short last one."""
    last = paragraph.rows[-1]
    if _is_centred(last, row):
        return False
    indent = row.box[0] - last.box[0]
    if len(paragraph.rows) == 1:
        if is_list_item(last.text) and ends_sentence(last.text):
            return indent < 0.5 * row.size
        # The second line may be indented less (first-line indent) or more (hanging indent).
        return abs(indent) > _HANGING * row.size or (
            indent > _INDENT * row.size and ends_sentence(last.text) and not is_list_item(last.text)
        )
    if abs(indent) > _INDENT * row.size:
        return True
    is_short = last.box[2] < row.box[2] - 0.25 * (row.box[2] - row.box[0])
    return (
        is_short and ends_sentence(last.text) and last.fragments[0].group != row.fragments[0].group
    )


def _is_centred(last: Row, row: Row) -> bool:
    return (
        abs((last.box[0] + last.box[2]) - (row.box[0] + row.box[2])) < row.size
        and abs(last.box[0] - row.box[0]) > 0.5 * row.size
    )
