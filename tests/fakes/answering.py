"""An answering service that says what a test wants, when it wants, and stores it as the real one
does."""

import threading
from collections.abc import Callable, Generator
from typing import Any

from core.domain.access import Principal
from core.ports.catalog import Catalog
from query.services import Asked

MakeAnswer = Callable[[Principal, Asked], dict[str, Any]]


class ScriptedAnswers:
    """Implements `query.services.AnswerQuestion`.

    `make`: what is answered. `gate`: when set to an Event, each question waits for it after
    `answer.created` and one delta.
    `first_words`: sent before `make` is asked.
    `error`: raised in place of the first event; `late_error` after `answer.created`.
    `closed` is set when a generator ended or was closed; `num_finished` counts the whole answers.
    """

    def __init__(self, catalog: Catalog, make: MakeAnswer | None = None) -> None:
        self._catalog = catalog
        self.make = make or plain_answer
        self.asked: list[tuple[Principal, Asked]] = []
        self.gate: threading.Event | None = None
        self.error: Exception | None = None
        self.late_error: Exception | None = None
        self.first_words = ""
        self.started = threading.Event()
        self.closed = threading.Event()
        self.num_finished = 0

    def __call__(self, principal: Principal, asked: Asked) -> Generator[dict[str, Any], None, None]:
        self.asked.append((principal, asked))
        if self.error is not None:
            raise self.error
        events: list[dict[str, Any]] = []

        def event(kind: str, **payload: Any) -> dict[str, Any]:
            events.append({"type": kind, "seq": len(events) + 1, **payload})
            return events[-1]

        try:
            yield event("answer.created", id=asked.answer_id)
            if self.late_error is not None:
                raise self.late_error
            if self.first_words:
                yield event("text.delta", delta=self.first_words)
            answer = self.make(principal, asked)
            yield event("text.delta", delta=answer["text"][:5])
            self.started.set()
            while self.gate is not None and not self.gate.wait(0.02):
                yield event("text.delta", delta="")  # so that a closed generator ends here
            yield event("text.delta", delta=answer["text"][5:])
            documents = [source["document_id"] for source in answer["sources"]]
            last = {"type": "answer.completed", "seq": len(events) + 1, "answer": answer}
            self._catalog.answers.store(principal, answer, [*events, last], documents)
            self.num_finished += 1
            yield last
        finally:
            self.closed.set()


def plain_answer(principal: Principal, asked: Asked) -> dict[str, Any]:
    """A whole answer object without citations."""
    return {
        "id": asked.answer_id,
        "object": "pincite.answer",
        "schema_version": 1,
        "created_at": "2026-01-05T09:00:00+00:00",
        "question": asked.question,
        "answer_status": "not_in_documents",
        "mode": "extractive",
        "mode_reason": "configured",
        "conversation_id": asked.conversation_id,
        "text": "Not in the documents.",
        "citations": [],
        "sentences": [],
        "sources": [],
        "missing": [asked.question],
        "usage": dict.fromkeys(
            (
                "prompt_tokens",
                "cached_tokens",
                "completion_tokens",
                "draft_tokens",
                "accepted_tokens",
            ),
            0,
        ),
        "timings": dict.fromkeys(
            (
                "condense_ms",
                "embed_ms",
                "search_ms",
                "rerank_ms",
                "queue_ms",
                "ttft_ms",
                "total_ms",
            ),
            0.0,
        ),
        "index_generation": "",
        "model": None,
        "trace_id": "",
    }
