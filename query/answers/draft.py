"""An answer while it is being made: what was sent of it, and nothing that was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.domain.answers import (
    Answer,
    AnswerSentence,
    AnswerSource,
    Citation,
    CitedQuote,
    TextRange,
    Timings,
    Verdict,
)
from core.ports.clock import Clock
from query.answers.composition import compose_one
from query.answers.events import Event, EventLog, EventType
from query.answers.projection import citation_to_json, sentence_to_json
from query.answers.quotes import Quote
from query.answers.sources import SourceMaker

__all__ = ["Draft", "Marked"]


@dataclass(frozen=True, slots=True)
class Marked:
    """A citation marker that was sent: `text[marker]` is `[n]`, what it supports `[start, end)`."""

    n: int
    start: int
    end: int
    marker: TextRange


class Draft:
    """Every method that sends something gives out its events, and they must be given out: the text,
    citations and sentences of the answer are made of what these events said."""

    def __init__(self, answer: Answer, sources: SourceMaker, clock: Clock) -> None:
        self.answer = answer
        self.sources = sources
        self.log = EventLog()
        self.timings = Timings()
        self.length = 0  # of the text, in code points
        self._clock = clock
        self._started = clock.monotonic()
        self._citations: list[Citation] = []
        self._sentences: list[AnswerSentence] = []
        self._cited: dict[str, AnswerSource] = {}
        self._source_ids: Mapping[str, str] = {}

    @property
    def num_citations(self) -> int:
        return len(self._citations)

    def number_sources(self, source_ids: Mapping[str, str]) -> None:
        """The ids of the sources, by the point id of their passage."""
        self._source_ids = source_ids

    def source_id(self, quote: Quote) -> str:
        """Raises KeyError for a passage that was not among the sources."""
        return self._source_ids[quote.evidence.passage.point_id]

    def text(self, delta: str) -> Iterator[Event]:
        """Send more text; the first of it is what `ttft_ms` measures."""
        if not delta:
            return
        if not self.timings.ttft_ms:
            self.timings = replace(self.timings, ttft_ms=self.elapsed_ms())
        self.length += len(delta)
        yield self.log.add(EventType.TEXT_DELTA, {"delta": delta})

    def quote(self, quote: Quote, n: int, lead: str) -> Iterator[Event]:
        """Send a verbatim quote with its citation."""
        paragraph = compose_one(
            quote,
            self.source_id(quote),
            n,
            at=self.length,
            lead=lead,
            citation_id=self._next_citation_id(),
        )
        yield from self.text(paragraph.delta)
        yield from self._cite(paragraph.citation, quote)

    def cite(
        self, marked: Marked, quotes: Sequence[Quote], verdict: Verdict, support_score: float
    ) -> Iterator[Event]:
        """Tell what a marker that was sent shows; the quotes are of one passage, the best first."""
        citation = Citation(
            id=self._next_citation_id(),
            n=marked.n,
            start=marked.start,
            end=marked.end,
            marker=marked.marker,
            verdict=verdict,
            support_score=support_score,
            sources=tuple(
                CitedQuote(self.source_id(quote), quote.text, quote.locations) for quote in quotes
            ),
        )
        yield from self._cite(citation, quotes[0])

    def sentence(self, sentence: AnswerSentence) -> Iterator[Event]:
        """Tell the verdict on a sentence that was sent."""
        self._sentences.append(sentence)
        yield self.log.add(EventType.SENTENCE_VERIFIED, {"sentence": sentence_to_json(sentence)})

    def citation_ids(self, since: int) -> tuple[str, ...]:
        """Ids of the citations after the first `since`."""
        return tuple(citation.id for citation in self._citations[since:])

    def finished(self) -> Answer:
        """The answer with all that was sent of it."""
        return replace(
            self.answer,
            text=self.log.text,
            citations=tuple(self._citations),
            sentences=tuple(self._sentences),
            sources=tuple(self._cited.values()),
            timings=replace(self.timings, total_ms=self.elapsed_ms()),
        )

    def elapsed_ms(self) -> float:
        return (self._clock.monotonic() - self._started) * 1000

    def _next_citation_id(self) -> str:
        return f"c{len(self._citations) + 1}"

    def _cite(self, citation: Citation, quote: Quote) -> Iterator[Event]:
        source_id = self.source_id(quote)
        if source_id not in self._cited:
            self._cited[source_id] = self.sources.cited(source_id, quote, citation)
        self._citations.append(citation)
        told = citation_to_json(citation)
        yield self.log.add(EventType.CITATION_ADDED, {"citation": told})
        verified = {name: told[name] for name in ("id", "verdict", "support_score")}
        yield self.log.add(EventType.CITATION_VERIFIED, verified)
