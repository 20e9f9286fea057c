"""Quotes to the text of an answer, with exact ranges for every citation.

A quote is shown as `“<quote>” [n]`. The citation's range is the quote without its quotation marks,
the marker's range is `[n]`; both half-open, in code points. So the text of a citation's range is
its quote, up to white space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.domain.answers import Citation, CitedQuote, TextRange, Verdict
from query.answers.quotes import Quote
from query.answers.wording import shown_quote

PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class CitedParagraph:
    """`delta` continues the text; `citation` points into the whole of it."""

    delta: str
    citation: Citation


def compose(quotes: Sequence[Quote], source_ids: Sequence[str]) -> list[CitedParagraph]:
    """One paragraph a quote, in order; `source_ids[i]` is the source of `quotes[i]`."""
    paragraphs: list[CitedParagraph] = []
    length = 0
    for number, (quote, source_id) in enumerate(zip(quotes, source_ids, strict=True), 1):
        lead = PARAGRAPH if paragraphs else ""
        paragraphs.append(compose_one(quote, source_id, number, at=length, lead=lead))
        length += len(paragraphs[-1].delta)
    return paragraphs


def compose_one(
    quote: Quote, source_id: str, number: int, *, at: int, lead: str, citation_id: str = ""
) -> CitedParagraph:
    """A quote after `at` characters of text and the white space `lead`, cited as [number].

    A verbatim quote supports itself: it is `supported` with 1.0.
    """
    shown, marker = shown_quote(quote.text), f"[{number}]"
    start = at + len(f"{lead}“")
    end = start + len(shown)
    marker_start = end + len("” ")
    citation = Citation(
        id=citation_id or f"c{number}",
        n=number,
        start=start,
        end=end,
        marker=TextRange(marker_start, marker_start + len(marker)),
        verdict=Verdict.SUPPORTED,
        support_score=1.0,
        sources=(CitedQuote(source_id, quote.text, quote.locations),),
    )
    return CitedParagraph(f"{lead}“{shown}” {marker}", citation)
