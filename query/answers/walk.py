"""The walk of one question: search, rerank, decide, quote or write, store, as a stream of events.

Every word of an extractive answer is a verbatim quote of a stored page; every sentence of a written
one was held against such quotes. Closing the generator abandons the answer, and nothing of it is
stored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import structlog

from core.domain.access import Principal, Scope
from core.domain.answers import Answer, AnswerMode, AnswerStatus
from core.domain.search import SearchFilter
from core.errors import PinciteError
from query.answers.deps import AnswerDeps
from query.answers.draft import Draft
from query.answers.events import Event, EventType, error_payload
from query.answers.finding import Found, FoundPart, find
from query.answers.generating import Abandoned
from query.answers.modes import Mode, ModeReason, choose_mode
from query.answers.parts import split_question
from query.answers.projection import answer_to_json, source_to_json
from query.answers.quoted import write_quotes
from query.answers.quotes import Quote
from query.answers.quoting import quote_found, unserved
from query.answers.sources import SourceMaker, number_passages
from query.answers.wording import missing_parts, not_found
from query.answers.writing.writer import Writer, Written
from query.retrieval.questions import analyse
from query.services import Asked

__all__ = ["Walk"]

log = structlog.get_logger(__name__)


class Walk:
    """The state of one answer on its way."""

    def __init__(self, principal: Principal, asked: Asked, deps: AnswerDeps) -> None:
        self._principal = principal
        self._asked = asked
        self._deps = deps
        # Everything that the answer may say, cited or not: a delete must find it.
        self._document_ids: set[str] = set()
        answer = Answer(
            id=asked.answer_id,
            question=asked.question,
            answer_status=AnswerStatus.ERROR,
            mode=AnswerMode.EXTRACTIVE,
            text="",
            citations=(),
            sources=(),
            conversation_id=asked.conversation_id,
            trace_id=asked.trace_id,
            created_at=deps.clock.now().isoformat(),
        )
        public_url = deps.settings.api.public_url
        sources = SourceMaker(answer.id, public_url, principal.has(Scope.EXPLAIN))
        self._draft = Draft(answer, sources, deps.clock)

    def events(self) -> Generator[Event, None, None]:
        """The last is `answer.completed` or `error`; none is once nobody wants the answer."""
        try:
            yield from self._run()
        except Abandoned:
            log.info("answer.abandoned", answer_id=self._draft.answer.id)
        except PinciteError as error:
            log.warning("answer.failed", answer_id=self._draft.answer.id, code=error.code)
            yield self._fail(error)

    def _run(self) -> Iterator[Event]:
        mode = self._begin()
        yield self._draft.log.add(EventType.ANSWER_CREATED, self._created())
        parts = split_question(" ".join((self._asked.standalone or self._asked.question).split()))
        yield self._draft.log.add(
            EventType.RETRIEVAL_QUERIES, {"queries": list(dict.fromkeys(p.query for p in parts))}
        )
        where = SearchFilter(self._asked.collections, self._asked.document_ids)
        found = find(self._principal, parts, where, self._deps)
        yield self._tell_sources(found)
        quotes = quote_found(self._principal, found, self._deps)
        unanswered = unserved(found.parts, quotes)
        missing = [part.part.text for part in unanswered]
        written = yield from self._write(found, quotes, unanswered, mode)
        yield from self._draft.text(self._closing(missing, is_empty=not quotes))
        yield self._complete(written, quotes, missing)

    def _begin(self) -> Mode:
        mode = choose_mode(
            self._asked.mode,
            self._deps.settings.answer.mode,
            self._deps.generator,
            self._deps.read_gate,
        )
        self._draft.answer = replace(
            self._draft.answer, mode=mode.mode, mode_reason=mode.reason.value
        )
        return mode

    def _created(self) -> dict[str, Any]:
        answer = self._draft.answer
        return {
            "id": answer.id,
            "created_at": answer.created_at,
            "question": answer.question,
            "mode": answer.mode.value,
            "mode_reason": answer.mode_reason,
            "conversation_id": answer.conversation_id,
        }

    def _tell_sources(self, found: Found) -> Event:
        self._draft.timings = replace(found.timings, condense_ms=self._asked.condense_ms)
        self._draft.answer = replace(self._draft.answer, index_generation=found.index_generation)
        passages = found.passages(self._deps.settings.retrieval.passages)
        ids = number_passages(passages)
        self._draft.number_sources(ids)
        versions, sources = found.versions, self._draft.sources
        return self._draft.log.add(
            EventType.RETRIEVAL_SOURCES,
            {
                "sources": [
                    source_to_json(sources.source(ids[p.point_id], p, versions[p.generation_id]))
                    for p in passages
                ]
            },
        )

    def _write(
        self,
        found: Found,
        quotes: Sequence[Quote],
        unanswered: Sequence[FoundPart],
        mode: Mode,
    ) -> Generator[Event, None, Written]:
        if not quotes:
            return Written(AnswerMode.EXTRACTIVE, ModeReason.NO_EVIDENCE)
        if mode.mode is AnswerMode.EXTRACTIVE:
            yield from write_quotes(self._draft, quotes)
            return Written(mode.mode, mode.reason)
        passages = found.passages(self._deps.settings.retrieval.passages)
        self._document_ids = {passage.document_id for passage in passages}
        writer = Writer(
            self._principal,
            self._asked,
            self._question(found, unanswered),
            found,
            quotes,
            mode,
            self._draft,
            self._deps,
        )
        return (yield from writer.write())

    def _question(self, found: Found, unanswered: Sequence[FoundPart]) -> str:
        """What the generator is asked: without the parts that nothing answers."""
        if not unanswered:
            return self._asked.standalone or self._asked.question
        return " ".join(part.part.text for part in found.parts if part not in unanswered)

    def _closing(self, missing: list[str], *, is_empty: bool) -> str:
        question = analyse(self._asked.question)
        if is_empty:
            return not_found(question)
        return f"\n\n{missing_parts(question, missing)}" if missing else ""

    def _complete(self, written: Written, quotes: Sequence[Quote], missing: list[str]) -> Event:
        status = AnswerStatus.PARTIAL if missing else AnswerStatus.ANSWERED
        self._draft.timings = replace(self._draft.timings, queue_ms=written.queue_ms)
        finished = replace(
            self._draft.finished(),
            answer_status=status if quotes else AnswerStatus.NOT_IN_DOCUMENTS,
            mode=written.mode,
            mode_reason=written.reason.value,
            model=written.model,
            usage=written.usage,
            missing=tuple(missing),
        )
        return self._store(
            finished, EventType.ANSWER_COMPLETED, {"answer": answer_to_json(finished)}
        )

    def _fail(self, error: PinciteError) -> Event:
        """The error event, stored with what was sent before it if the catalog can."""
        failed = replace(self._draft.finished(), answer_status=AnswerStatus.ERROR)
        try:
            return self._store(failed, EventType.ERROR, error_payload(error))
        except PinciteError as second:
            log.warning("answer.not_stored", answer_id=failed.id, code=second.code)
            return self._draft.log.add(EventType.ERROR, error_payload(error))

    def _store(self, finished: Answer, last: EventType, payload: dict[str, Any]) -> Event:
        """Store the answer with all its events, and only then let the last one out."""
        event = self._draft.log.next(last, payload)
        told = self._document_ids | {source.document_id for source in finished.sources}
        self._deps.catalog.answers.store(
            self._principal,
            answer_to_json(finished),
            [*self._draft.log.to_json(), event.to_json()],
            sorted(told),
        )
        return event
