"""What a caller sees while an answer is made: typed events with an increasing `seq`.

As JSON an event is one flat object, `{"type": ..., "seq": ..., <payload>}`; the same object is
streamed, stored and replayed. Order: `answer.created`, `retrieval.queries`, `retrieval.sources`,
then for each quote `text.delta`, `citation.added`, `citation.verified`; for each sentence of a
written answer its deltas, both events of each of its citations, `sentence.verified`; and at the end
`answer.completed` (the whole answer) or `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.errors import ErrorKind, PinciteError

_RETRYABLE = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.OVERLOADED, ErrorKind.TIMEOUT})


class EventType(StrEnum):
    ANSWER_CREATED = "answer.created"
    RETRIEVAL_QUERIES = "retrieval.queries"
    RETRIEVAL_SOURCES = "retrieval.sources"
    TEXT_DELTA = "text.delta"
    CITATION_ADDED = "citation.added"
    CITATION_VERIFIED = "citation.verified"
    SENTENCE_VERIFIED = "sentence.verified"
    ANSWER_COMPLETED = "answer.completed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Event:
    """`seq` counts from 1 within one answer. `payload` holds JSON values only."""

    seq: int
    type: EventType
    payload: dict[str, Any]

    @property
    def is_last(self) -> bool:
        return self.type in {EventType.ANSWER_COMPLETED, EventType.ERROR}

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type.value, "seq": self.seq, **self.payload}


class EventLog:
    """Numbers the events of one answer and keeps them for the catalog."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def next(self, event_type: EventType, payload: dict[str, Any]) -> Event:
        """The event that would come next; it is not kept."""
        return Event(len(self._events) + 1, event_type, payload)

    def add(self, event_type: EventType, payload: dict[str, Any]) -> Event:
        event = self.next(event_type, payload)
        self._events.append(event)
        return event

    def to_json(self) -> list[dict[str, Any]]:
        return [event.to_json() for event in self._events]

    @property
    def text(self) -> str:
        """All text that was sent."""
        return "".join(
            str(event.payload["delta"])
            for event in self._events
            if event.type is EventType.TEXT_DELTA
        )


def error_payload(error: PinciteError) -> dict[str, Any]:
    """What a caller is told of an error: no context, which is for the log."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.kind in _RETRYABLE,
    }
