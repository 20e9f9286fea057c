"""A generator's text on its way to the reader: at once and flagged, or sentence by sentence.

`LiveText` sends words as they come and tells the verdict of a sentence once it is complete.
`HeldText` sends a sentence only once it is verified, and the verbatim quote in place of one that is
not supported. Both: no half marker, nothing active, markers numbered as they first appear, and what
was sent stays as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import regex

from core.domain.answers import AnswerSentence, TextRange, Verdict
from query.answers.composition import PARAGRAPH
from query.answers.draft import Draft, Marked
from query.answers.events import Event
from query.answers.markers import Cites, MarkerFilter, Words
from query.answers.plain_text import InertStream, clean
from query.answers.quotes import Quote
from query.answers.writing.given import GivenPassage, is_same_place
from query.answers.writing.sent_text import SentMarker, SentText, Span
from query.answers.writing.support import Cited, Judged, judge
from query.answers.written_sentences import SentenceAssembler, WrittenSentence

__all__ = ["HeldText", "LiveText", "Shown", "WrittenText"]

_IS_WHOLE = regex.compile(r"[.!?…。！？।؟:;]['\"”’»)\]]*$")  # noqa: RUF001


class WrittenText(Protocol):
    """`num_written`: sentences of the generator's own that were sent."""

    num_written: int

    def push(self, text: str) -> Iterator[Event]:
        """More of the generator's text."""

    def end(self, *, is_cut: bool) -> Iterator[Event]:
        """It is complete, or was cut off by its length."""

    def break_off(self) -> Iterator[Event]:
        """Nothing more comes, in the middle of it."""


class Shown:
    """What the reader has seen of the quotes: their numbers, and which are used up."""

    def __init__(self, given: Sequence[GivenPassage]) -> None:
        self._given = given
        self._numbers: dict[object, int] = {}
        self._used: list[Quote] = []

    def number(self, passage_number: int) -> int:
        """What cites a passage, counted as they first appear."""
        return self._numbers.setdefault(passage_number, len(self._numbers) + 1)

    def number_of(self, quote: Quote) -> int:
        for passage in self._given:
            if any(is_same_place(quote, own) for own in passage.quotes):
                return self.number(passage.number)
        evidence = quote.evidence
        place = (evidence.passage.point_id, evidence.start)
        return self._numbers.setdefault(place, len(self._numbers) + 1)

    def use(self, *quotes: Quote) -> None:
        self._used += quotes

    def unused(self, quotes: Sequence[Quote]) -> list[Quote]:
        """Those whose words were neither quoted nor cited, wherever they stand."""
        return [q for q in quotes if not any(_says_again(q, used) for used in self._used)]


def _says_again(quote: Quote, other: Quote) -> bool:
    return is_same_place(quote, other) or quote.text.split() == other.text.split()


class LiveText:
    """Implements WrittenText: words go out at once, unsupported sentences are flagged."""

    def __init__(self, draft: Draft, given: Sequence[GivenPassage], shown: Shown) -> None:
        self.num_written = 0
        self._draft = draft
        self._given = given
        self._shown = shown
        self._filter = MarkerFilter(len(given))
        self._sentences = SentenceAssembler()
        self._inert = InertStream()
        self._sent = SentText(draft.length)
        self._space = ""  # not sent before it is known what follows
        self._last: tuple[WrittenSentence, Span] | None = None

    def push(self, text: str) -> Iterator[Event]:
        for item in self._filter.push(clean(text)):
            yield from self._item(item)

    def end(self, *, is_cut: bool) -> Iterator[Event]:
        del is_cut  # what was sent is sent
        for item in self._filter.end():
            yield from self._item(item)
        yield from self.break_off()

    def break_off(self) -> Iterator[Event]:
        for sentence in self._sentences.end():
            yield from self._tell(sentence)
        for marker in self._sent.take_rest():
            yield from self._cite_alone(marker)

    def _item(self, item: Words | Cites) -> Iterator[Event]:
        if isinstance(item, Words):
            yield from self._words(item.text)
        else:
            for number in item.numbers:
                yield from self._marker(number)
        for sentence in self._sentences.push(item):
            yield from self._tell(sentence)

    def _words(self, text: str) -> Iterator[Event]:
        text = self._space + text
        kept = text.rstrip()
        self._space = text[len(kept) :]
        shown = self._inert.push(kept if self._draft.length else kept.lstrip())
        self._sent.add_words(shown)
        yield from self._draft.text(shown)

    def _marker(self, number: int) -> Iterator[Event]:
        n = self._shown.number(number)
        space = self._space if self._draft.length else ""
        shown = self._inert.push(f"{space}[{n}]")
        self._space = ""
        self._sent.add_marker(shown, number, n)
        yield from self._draft.text(shown)

    def _tell(self, sentence: WrittenSentence) -> Iterator[Event]:
        """The citations of a sentence, then its verdict."""
        self.num_written += 1
        judged = judge(sentence, self._given)
        span = self._sent.take_sentence(sentence.text)
        self._last = sentence, span
        by_number = {cited.passage.number: cited for cited in judged.cited}
        before = self._draft.num_citations
        for marker in self._sent.take_markers(span, by_number):
            start, end = span.supported_by(marker)
            yield from self._cite(marker, start, end, by_number[marker.number])
        yield from self._draft.sentence(
            AnswerSentence(
                span.start,
                span.end,
                judged.verdict,
                judged.support_score,
                self._draft.citation_ids(before),
            )
        )

    def _cite_alone(self, marker: SentMarker) -> Iterator[Event]:
        """A marker that no sentence took is the last one's."""
        if self._last is None:
            passage = self._given[marker.number - 1]
            cited = Cited(passage, passage.quotes[:1], Verdict.UNSUPPORTED, 0.0)
            yield from self._cite(marker, marker.place.start, marker.place.start, cited)
            return
        sentence, span = self._last
        alone = judge(WrittenSentence(sentence.text, (marker.number,)), self._given)
        yield from self._cite(marker, *span.supported_by(marker), alone.cited[0])

    def _cite(self, marker: SentMarker, start: int, end: int, cited: Cited) -> Iterator[Event]:
        self._shown.use(*cited.quotes)
        marked = Marked(marker.n, start, end, marker.place)
        yield from self._draft.cite(marked, cited.quotes, cited.verdict, cited.support_score)


class HeldText:
    """Implements WrittenText: whole sentences, verified; quotes for those that are not supported.

    Args:
        quotes: what the answer would quote; an unsupported sentence that cites nothing gives way
            to the first of them that was not shown.
    """

    def __init__(
        self,
        draft: Draft,
        given: Sequence[GivenPassage],
        shown: Shown,
        quotes: Sequence[Quote],
    ) -> None:
        self.num_written = 0
        self._draft = draft
        self._given = given
        self._shown = shown
        self._quotes = quotes
        self._filter = MarkerFilter(len(given))
        self._sentences = SentenceAssembler()

    def push(self, text: str) -> Iterator[Event]:
        for item in self._filter.push(clean(text)):
            for sentence in self._sentences.push(item):
                yield from self._send(sentence)

    def end(self, *, is_cut: bool) -> Iterator[Event]:
        rest: list[WrittenSentence] = []
        for item in self._filter.end():
            rest += self._sentences.push(item)
        rest += self._sentences.end()
        if is_cut and rest and not _IS_WHOLE.search(rest[-1].text):
            rest.pop()
        for sentence in rest:
            yield from self._send(sentence)

    def break_off(self) -> Iterator[Event]:
        """What is not complete was never sent."""
        yield from ()

    def _send(self, sentence: WrittenSentence) -> Iterator[Event]:
        judged = judge(sentence, self._given)
        lead = self._lead(sentence)
        if judged.verdict is Verdict.UNSUPPORTED:
            yield from self._replace(judged, lead)
        else:
            self.num_written += 1
            yield from self._show(sentence, judged, lead)

    def _show(self, sentence: WrittenSentence, judged: Judged, lead: str) -> Iterator[Event]:
        # Several quotes may be cited where one says it all: the others are not shown.
        cited = [one for one in judged.cited if one.verdict is not Verdict.UNSUPPORTED]
        text = InertStream().push(sentence.text)
        start = self._draft.length + len(lead)
        end = at = start + len(text)
        markers: list[tuple[Marked, Cited]] = []
        for one in cited:
            n = self._shown.number(one.passage.number)
            place = TextRange(at + 1, at + 1 + len(f"[{n}]"))
            markers.append((Marked(n, start, end, place), one))
            at = place.end
        before = self._draft.num_citations
        yield from self._draft.text(lead + text + "".join(f" [{m.n}]" for m, _ in markers))
        for marked, one in markers:
            self._shown.use(*one.quotes)
            yield from self._draft.cite(marked, one.quotes, one.verdict, one.support_score)
        yield from self._draft.sentence(
            AnswerSentence(
                start,
                end,
                judged.verdict,
                judged.support_score,
                self._draft.citation_ids(before),
            )
        )

    def _replace(self, judged: Judged, lead: str) -> Iterator[Event]:
        """The quote in place of the words; nothing where it was shown already."""
        cited = [quote for one in judged.cited for quote in one.quotes]
        quotes = self._shown.unused(cited or self._quotes)
        if not quotes:
            return
        quote, before = quotes[0], self._draft.num_citations
        start = self._draft.length + len(lead)
        self._shown.use(quote)
        n = self._shown.number_of(quote)
        yield from self._draft.quote(quote, n, lead)
        end = self._draft.length - len(f" [{n}]")
        yield from self._draft.sentence(
            AnswerSentence(
                start,
                end,
                Verdict.SUPPORTED,
                1.0,
                self._draft.citation_ids(before),
                is_replaced=True,
            )
        )

    def _lead(self, sentence: WrittenSentence) -> str:
        """White space before a sentence: none, a space, a line end or an empty line."""
        if not self._draft.length:
            return ""
        num_lines = sentence.lead.count("\n")
        return " " if num_lines == 0 else "\n" if num_lines == 1 else PARAGRAPH
