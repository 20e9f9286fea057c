"""The extractive writer: verbatim quotes, one a paragraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from query.answers.composition import PARAGRAPH
from query.answers.draft import Draft
from query.answers.events import Event
from query.answers.quotes import Quote

__all__ = ["write_quotes"]


def write_quotes(draft: Draft, quotes: Sequence[Quote]) -> Iterator[Event]:
    """Send the quotes of an answer that says nothing else, numbered from 1."""
    for number, quote in enumerate(quotes, 1):
        yield from draft.quote(quote, number, PARAGRAPH if draft.length else "")
