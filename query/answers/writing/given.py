"""What a generator is given to write from: numbered passages, each with verbatim quotes.

The unit of evidence is the sentence. Small models write best from the few sentences that hold the
answer; one with a wide window gets the whole passages around them. Either way every passage carries
quotes that were cut from the stored pages: those, and nothing else, are what a citation shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from core.domain.access import Principal
from core.domain.generation import GeneratorInfo
from core.domain.search import Passage
from core.errors import InternalError
from query.answers.deps import AnswerDeps
from query.answers.evidence import Evidence, make_readable
from query.answers.finding import Found
from query.answers.quotes import Quote
from query.answers.quoting import overlaps, quote_evidence

__all__ = ["GivenPassage", "give", "is_same_place"]

_MIN_SENTENCES = 2
_MAX_SENTENCES = 4
_MAX_PASSAGES = 6
_MAX_QUOTES = 24  # of one passage
_WIDE_WINDOW_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class GivenPassage:
    """
    number: what cites it, from 1 in the prompt. label: title and heading above it.
    text: what the generator reads. quotes: verbatim, the best first, at least one.
    """

    number: int
    label: str
    text: str
    quotes: tuple[Quote, ...]

    @property
    def language(self) -> str:
        return self.quotes[0].evidence.passage.chunk.language


def give(
    principal: Principal,
    found: Found,
    quotes: Sequence[Quote],
    info: GeneratorInfo,
    deps: AnswerDeps,
) -> list[GivenPassage]:
    """Numbered passages, the strongest first, made of the answer's quotes and what is near them.

    Raises ObjectStoreUnavailable, CatalogUnavailable.
    """
    ordered = _in_turns(found, quotes)
    style = deps.settings.answer.evidence
    is_wide = (info.max_model_tokens or 0) >= _WIDE_WINDOW_TOKENS
    if style == "passages" or (style == "auto" and is_wide):
        return _passages(principal, found, ordered, deps)
    return _sentences(principal, found, ordered[:_MAX_SENTENCES], deps)


def is_same_place(one: Quote, other: Quote) -> bool:
    return overlaps(one.evidence, other.evidence)


def _in_turns(found: Found, quotes: Sequence[Quote]) -> list[Quote]:
    """The best quote of each part of the question, then the second of each, and so on."""
    columns = [
        [quote for quote in quotes if any(overlaps(e, quote.evidence) for e in part.evidence)]
        for part in found.parts
    ]
    ordered: list[Quote] = []
    for row in zip_longest(*columns):
        ordered += [quote for quote in row if quote is not None and quote not in ordered]
    return ordered


def _sentences(
    principal: Principal, found: Found, quotes: Sequence[Quote], deps: AnswerDeps
) -> list[GivenPassage]:
    """One passage a quote; a single one gets the next best sentence for company."""
    given = list(quotes)
    if len(given) < _MIN_SENTENCES:
        further = _further(found, given, deps)
        wanted = [item for item, _ in zip(further, range(_MIN_SENTENCES), strict=False)]
        given += _quotes(principal, found, wanted, deps)[: _MIN_SENTENCES - len(given)]
    return [
        GivenPassage(
            number,
            _label(quote.evidence.passage, quote.evidence.scored.sentence.heading),
            quote.text,
            (quote,),
        )
        for number, quote in enumerate(given, 1)
    ]


def _passages(
    principal: Principal, found: Found, quotes: Sequence[Quote], deps: AnswerDeps
) -> list[GivenPassage]:
    """The passages of the quotes, then the next best ones, whole."""
    limit = min(_MAX_PASSAGES, deps.settings.retrieval.passages)
    passages = {quote.evidence.passage.point_id: quote.evidence.passage for quote in quotes}
    for passage in found.passages(limit):
        passages.setdefault(passage.point_id, passage)
    chosen = list(passages.values())[: max(limit, len(quotes))]
    further = list(_further(found, quotes, deps))
    wanted = [item for passage in chosen for item in _of(passage, further)[:_MAX_QUOTES]]
    quotable = [*quotes, *_quotes(principal, found, wanted, deps)]  # the pages are read once
    given: list[GivenPassage] = []
    for passage in chosen:
        own = [q for q in quotable if q.evidence.passage.point_id == passage.point_id]
        if own:
            label = _label(passage, " > ".join(passage.chunk.heading_path))
            given.append(GivenPassage(len(given) + 1, label, passage.chunk.text, tuple(own)))
    return given


def _of(passage: Passage, evidence: Sequence[Evidence]) -> list[Evidence]:
    return [item for item in evidence if item.passage.point_id == passage.point_id]


def _further(found: Found, quotes: Sequence[Quote], deps: AnswerDeps) -> Iterator[Evidence]:
    """Other readable sentences, the best first, of the parts that have an answer and of passages
    that are among the answer's sources."""
    taken = [quote.evidence for quote in quotes]
    sources = {p.point_id for p in found.passages(deps.settings.retrieval.passages)}
    for part in found.parts:
        if not part.evidence:
            continue
        for scored in part.reranked.sentences:
            if scored.cosine is None or scored.sentence.passage.point_id not in sources:
                continue
            item = make_readable(scored)
            if item is not None and not any(overlaps(item, other) for other in taken):
                taken.append(item)
                yield item


def _quotes(
    principal: Principal, found: Found, wanted: Iterable[Evidence], deps: AnswerDeps
) -> list[Quote]:
    """Those that hold: the answer does not stand or fall with them."""
    try:
        return quote_evidence(principal, found, wanted, deps)
    except InternalError:  # logged, quote by quote
        return []


def _label(passage: Passage, heading: str) -> str:
    return ", ".join(part for part in (passage.title, heading) if part)
