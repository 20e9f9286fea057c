"""The walk of one question: search, rerank, decide, quote, verify, store, as a stream of events.

Extractive: every word of the answer is a verbatim quote of a stored page. The caller decides how
events travel; closing the generator abandons the answer, and nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from core.domain.access import Principal, Scope
from core.domain.answers import Answer, AnswerMode, AnswerSource, AnswerStatus, Timings
from core.domain.search import SearchFilter
from core.errors import InternalError, InvalidInput, PinciteError
from core.ids import new_answer_id
from query.answers.composition import CitedParagraph, compose
from query.answers.deps import AnswerDeps
from query.answers.events import Event, EventLog, EventType, error_payload
from query.answers.evidence import Evidence, reading_order
from query.answers.finding import Found, FoundPart, find
from query.answers.parts import split_question
from query.answers.projection import answer_to_json, citation_to_json, source_to_json
from query.answers.quotes import PageTexts, Quote, cut_quote
from query.answers.sources import SourceMaker, number_passages
from query.answers.wording import missing_parts, not_found
from query.retrieval.questions import analyse
from query.services import Asked

__all__ = ["AnswerDeps", "AnswerRequest", "Answering", "answer"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """`where` narrows inside what the Principal may see. `answer_id` is the id that the answer
    shall have (empty: a new one); `trace_id` is the caller's own."""

    question: str
    where: SearchFilter = field(default_factory=SearchFilter)
    answer_id: str = ""
    trace_id: str = ""


def answer(
    principal: Principal, request: AnswerRequest, deps: AnswerDeps
) -> Generator[Event, None, None]:
    """Answer a question as a stream of events; the last is `answer.completed` or `error`.

    The answer and its events are stored before the last event is given out, exactly as they are
    sent. Errors on the way become an `error` event and a stored answer of status `error`; an
    `error` that comes from the catalog itself is not stored.

    Raises (before the first event) NotPermitted without the scope `search`, InvalidInput for an
    empty or too long question.
    """
    principal.require(Scope.SEARCH)
    limit = deps.settings.answer.max_question_chars
    if not request.question.strip():
        raise InvalidInput("the question is empty")
    if len(request.question) > limit:
        raise InvalidInput(f"the question is longer than {limit} characters")
    return _Walk(principal, request, deps).events()


@dataclass(frozen=True, slots=True)
class Answering:
    """Implements `query.services.AnswerQuestion`: the same walk with events as JSON objects."""

    deps: AnswerDeps

    def __call__(self, principal: Principal, asked: Asked) -> Generator[dict[str, Any], None, None]:
        where = SearchFilter(collections=asked.collections, document_ids=asked.document_ids)
        request = AnswerRequest(asked.question, where, asked.answer_id, asked.trace_id)
        with closing(answer(principal, request, self.deps)) as events:
            for event in events:
                yield event.to_json()


class _Walk:
    """The state of one answer on its way."""

    def __init__(self, principal: Principal, request: AnswerRequest, deps: AnswerDeps) -> None:
        self.principal = principal
        self.request = request
        self.deps = deps
        self.log = EventLog()
        self.started = deps.clock.monotonic()
        self.timings = Timings()
        self.answer = Answer(
            id=request.answer_id or new_answer_id(),
            question=request.question,
            answer_status=AnswerStatus.ERROR,
            mode=AnswerMode.EXTRACTIVE,
            text="",
            citations=(),
            sources=(),
            trace_id=request.trace_id,
            created_at=deps.clock.now().isoformat(),
        )
        self.sources = SourceMaker(
            self.answer.id, deps.settings.api.public_url, principal.has(Scope.EXPLAIN)
        )

    def events(self) -> Generator[Event, None, None]:
        try:
            yield from self._run()
        except PinciteError as error:
            log.warning("answer.failed", answer_id=self.answer.id, code=error.code)
            yield self._fail(error)

    def _run(self) -> Iterator[Event]:
        yield self.log.add(
            EventType.ANSWER_CREATED,
            {
                "id": self.answer.id,
                "created_at": self.answer.created_at,
                "question": self.answer.question,
                "mode": self.answer.mode.value,
            },
        )
        parts = split_question(" ".join(self.request.question.split()))
        yield self.log.add(
            EventType.RETRIEVAL_QUERIES, {"queries": list(dict.fromkeys(p.query for p in parts))}
        )
        found = find(self.principal, parts, self.request.where, self.deps)
        self.timings = found.timings
        self.answer = replace(self.answer, index_generation=found.index_generation)
        passages = found.passages(self.deps.settings.retrieval.passages)
        ids = number_passages(passages)
        versions = found.versions
        yield self.log.add(
            EventType.RETRIEVAL_SOURCES,
            {
                "sources": [
                    source_to_json(
                        self.sources.source(ids[p.point_id], p, versions[p.generation_id])
                    )
                    for p in passages
                ]
            },
        )
        quotes = self._quote(found)
        paragraphs = compose(quotes, [ids[q.evidence.passage.point_id] for q in quotes])
        yield from self._send(paragraphs)
        missing = [part.part.text for part in found.parts if not _is_served(part, quotes)]
        closing = self._closing(missing, is_empty=not paragraphs)
        if closing:
            yield self._delta(closing)
        yield self._complete(quotes, paragraphs, ids, missing)

    def _quote(self, found: Found) -> list[Quote]:
        """Verified quotes in the order of the answer.

        Raises InternalError when there was evidence but no quote of it could be verified.
        """
        wanted = _without_repeats([e for p in found.parts for e in reading_order(p.evidence)])
        texts = PageTexts(self.principal, self.deps.artifacts, found.versions, wanted)
        quotes = [quote for quote in (cut_quote(item, texts) for item in wanted) if quote]
        if wanted and not quotes:
            raise InternalError(
                "the stored pages do not match what was found",
                hint="put the document into its bucket again",
            )
        return quotes

    def _send(self, paragraphs: Sequence[CitedParagraph]) -> Iterator[Event]:
        for paragraph in paragraphs:
            citation = paragraph.citation
            yield self._delta(paragraph.delta)
            yield self.log.add(EventType.CITATION_ADDED, {"citation": citation_to_json(citation)})
            yield self.log.add(
                EventType.CITATION_VERIFIED,
                {
                    "id": citation.id,
                    "verdict": citation.verdict.value,
                    "support_score": citation.support_score,
                },
            )

    def _delta(self, text: str) -> Event:
        if not self.timings.ttft_ms:
            self.timings = replace(self.timings, ttft_ms=self._ms_since(self.started))
        return self.log.add(EventType.TEXT_DELTA, {"delta": text})

    def _closing(self, missing: list[str], *, is_empty: bool) -> str:
        question = analyse(self.request.question)
        if is_empty:
            return not_found(question)
        return f"\n\n{missing_parts(question, missing)}" if missing else ""

    def _complete(
        self,
        quotes: Sequence[Quote],
        paragraphs: Sequence[CitedParagraph],
        ids: Mapping[str, str],
        missing: list[str],
    ) -> Event:
        status = AnswerStatus.PARTIAL if missing else AnswerStatus.ANSWERED
        cited: dict[str, AnswerSource] = {}
        for quote, paragraph in zip(quotes, paragraphs, strict=True):
            source_id = ids[quote.evidence.passage.point_id]
            if source_id not in cited:
                cited[source_id] = self.sources.cited(source_id, quote, paragraph.citation)
        finished = replace(
            self.answer,
            answer_status=status if paragraphs else AnswerStatus.NOT_IN_DOCUMENTS,
            text=self.log.text,
            citations=tuple(paragraph.citation for paragraph in paragraphs),
            sources=tuple(cited.values()),
            missing=tuple(missing),
            timings=replace(self.timings, total_ms=self._ms_since(self.started)),
        )
        return self._store(
            finished, EventType.ANSWER_COMPLETED, {"answer": answer_to_json(finished)}
        )

    def _fail(self, error: PinciteError) -> Event:
        """The error event, stored with what was sent before it if the catalog can."""
        failed = replace(
            self.answer,
            answer_status=AnswerStatus.ERROR,
            text=self.log.text,
            timings=replace(self.timings, total_ms=self._ms_since(self.started)),
        )
        try:
            return self._store(failed, EventType.ERROR, error_payload(error))
        except PinciteError as second:
            log.warning("answer.not_stored", answer_id=self.answer.id, code=second.code)
            return self.log.add(EventType.ERROR, error_payload(error))

    def _store(self, finished: Answer, last: EventType, payload: dict[str, Any]) -> Event:
        """Store the answer with all its events, and only then let the last one out."""
        event = self.log.next(last, payload)
        self.deps.catalog.answers.store(
            self.principal,
            answer_to_json(finished),
            [*self.log.to_json(), event.to_json()],
            sorted({source.document_id for source in finished.sources}),
        )
        return event

    def _ms_since(self, start: float) -> float:
        return (self.deps.clock.monotonic() - start) * 1000


def _without_repeats(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Evidence that serves two parts is quoted once."""
    kept: list[Evidence] = []
    for item in evidence:
        if not any(_overlap(item, other) for other in kept):
            kept.append(item)
    return kept


def _is_served(part: FoundPart, quotes: Sequence[Quote]) -> bool:
    """Whether any of a part's evidence is in the answer."""
    return any(_overlap(item, quote.evidence) for item in part.evidence for quote in quotes)


def _overlap(item: Evidence, other: Evidence) -> bool:
    is_same_passage = item.passage.point_id == other.passage.point_id
    return is_same_passage and item.start < other.end and other.start < item.end
