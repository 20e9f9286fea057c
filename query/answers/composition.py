"""Quotes to the text of an answer, with exact ranges for every citation.

Each quote is one paragraph, `“<quote>” [n]`. The citation's range is the quote without its
quotation marks, the marker's range is `[n]`; both half-open, in code points. So the text of a
citation's range is its quote, up to white space.
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
    """One paragraph a quote, in order; `source_ids[i]` is the source of `quotes[i]`.

    A verbatim quote supports itself: it is `supported` with 1.0.
    """
    paragraphs: list[CitedParagraph] = []
    length = 0
    for number, (quote, source_id) in enumerate(zip(quotes, source_ids, strict=True), 1):
        lead = f"{PARAGRAPH if paragraphs else ''}“"
        shown, marker = shown_quote(quote.text), f"[{number}]"
        start = length + len(lead)
        end = start + len(shown)
        marker_start = end + len("” ")
        citation = Citation(
            id=f"c{number}",
            n=number,
            start=start,
            end=end,
            marker=TextRange(marker_start, marker_start + len(marker)),
            verdict=Verdict.SUPPORTED,
            support_score=1.0,
            sources=(CitedQuote(source_id, quote.text, quote.locations),),
        )
        delta = f"{lead}{shown}” {marker}"
        length += len(delta)
        paragraphs.append(CitedParagraph(delta, citation))
    return paragraphs
