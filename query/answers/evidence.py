# ruff: noqa: RUF001 - punctuation of many scripts
"""Choosing what to quote: the fewest sentences that answer, each readable by itself.

A quote is one sentence, or two neighbours where one alone says nothing: a sentence that begins with
"It" or "This" takes its predecessor along, and a heading, a question or an introduction that ends
in a colon takes what follows. A table is quoted by the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from core.domain.search import Passage
from query.retrieval.reranking import Reranked, ScoredSentence
from query.retrieval.sentences import Sentence, sentences_of

# A further quote must come this close to the best one.
RUNNER_UP_MARGIN = 0.3
_HEADING_WORDS = 8
_CELL = " | "

_LEANS_BACK = regex.compile(
    r"^(?:It|Its|They|Their|Them|This|That|These|Those|He|His|She|Her|Such|However|Therefore|Thus"
    r"|Hence|Otherwise|Then|Also|Instead|In this case|In that case|If so|If not|The former"
    r"|The latter|Both|Es|Sie|Er|Ihr|Ihre|Dies|Diese[rsnm]?|Jene[rsnm]?|Dadurch|Dabei|Dafür"
    r"|Daher|Deshalb|Danach|Dann|Andernfalls|Außerdem|Jedoch|In diesem Fall)\b"
)
_LIST_ITEM = regex.compile(r"^(?:[-–—•*▪◦‣·]|\(?\p{L}\)|\(?\p{N}+[.)])\s")
_ENDS = regex.compile(r"[.!。！؟।…][\"'”’“»)\]]*$")


@dataclass(frozen=True, slots=True)
class Evidence:
    """`passage.chunk.text[start:end]`, one or two neighbouring sentences. `scored` is the one that
    was found; `answer_score` its."""

    passage: Passage
    start: int
    end: int
    scored: ScoredSentence

    @property
    def text(self) -> str:
        return self.passage.chunk.text[self.start : self.end]

    @property
    def answer_score(self) -> float:
        return self.scored.answer_score


def choose_evidence(reranked: Reranked, max_quotes: int) -> list[Evidence]:
    """The best evidence first, then runners-up that come close; empty when nothing was found.

    One quote a passage, and none that says the same words again: a second place helps somebody who
    looks for an answer more than a second sentence of the first one does. The sentence that means
    most nearly what is asked is quoted too, whatever its words and its passage count for: of
    evidence in other words that is all there is (docs/answers.md).
    """
    chosen: list[Evidence] = []
    for scored in reranked.sentences:
        if scored.cosine is None or len(chosen) == max_quotes:
            break
        if chosen and scored.answer_score < chosen[0].answer_score - RUNNER_UP_MARGIN:
            break
        _add(chosen, make_readable(scored))
    nearest = max(
        (s for s in reranked.sentences if s.cosine is not None),
        key=lambda s: s.cosine or 0.0,
        default=None,
    )
    if nearest is None or not chosen or max_quotes < 2:
        return chosen
    if (nearest.cosine or 0.0) > max(e.scored.cosine or 0.0 for e in chosen):
        kept = chosen[: max_quotes - 1]
        _add(kept, make_readable(nearest))
        return kept
    return chosen


def _add(chosen: list[Evidence], evidence: Evidence | None) -> None:
    if evidence is not None and not any(_repeats(evidence, other) for other in chosen):
        chosen.append(evidence)


def make_readable(scored: ScoredSentence) -> Evidence | None:
    """The sentence with the neighbour it needs; None for what can never be a quote by itself (a
    heading or a question that nothing follows, the first line of a table)."""
    sentence = scored.sentence
    chunk = sentence.passage.chunk
    neighbours = sentences_of(sentence.passage)
    if chunk.is_table and sentence.ordinal == 0 and len(neighbours) > 1:
        return None
    if _is_header_row(sentence, neighbours):
        return None
    if chunk.is_table:
        return _evidence(scored, sentence, sentence)
    if _leads_on(sentence):
        if sentence.ordinal + 1 >= len(neighbours):
            return None
        return _evidence(scored, sentence, neighbours[sentence.ordinal + 1])
    if sentence.ordinal > 0 and _LEANS_BACK.match(sentence.text):
        return _evidence(scored, neighbours[sentence.ordinal - 1], sentence)
    return _evidence(scored, sentence, sentence)


def reading_order(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Passages in the order given (best first), quotes of one passage as they stand in it."""
    places = {item.passage.point_id: place for place, item in reversed(list(enumerate(evidence)))}
    return sorted(evidence, key=lambda item: (places[item.passage.point_id], item.start))


def _evidence(scored: ScoredSentence, first: Sentence, last: Sentence) -> Evidence:
    return Evidence(scored.sentence.passage, first.start, last.end, scored)


def _is_header_row(sentence: Sentence, neighbours: Sequence[Sentence]) -> bool:
    """The first of several rows between other text; it says what the rows are about, not what is in
    them."""
    place = sentence.ordinal
    return (
        _CELL in sentence.text
        and (place == 0 or _CELL not in neighbours[place - 1].text)
        and place + 1 < len(neighbours)
        and _CELL in neighbours[place + 1].text
    )


def _leads_on(sentence: Sentence) -> bool:
    """A question, an introduction, or a heading: its answer is what follows."""
    text = sentence.text
    if text.endswith(("?", ":", "？", "：")):
        return True
    if _ENDS.search(text):
        return False
    if _LIST_ITEM.match(text):
        return False
    words = text.split()
    return len(words) <= _HEADING_WORDS and not any(character.isdigit() for character in text)


def _repeats(evidence: Evidence, other: Evidence) -> bool:
    is_same_passage = evidence.passage.point_id == other.passage.point_id
    return is_same_passage or evidence.text.split() == other.text.split()
