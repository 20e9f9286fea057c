"""One question being answered for an HTTP request."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace

from core.domain.access import Principal
from query.api.audit import write_audit
from query.http.worker_events import Event, HasLeft
from query.services import Asked, Services


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """`running` is the set of ids of answers in the making, for whoever asks about one of them."""

    services: Services
    principal: Principal
    asked: Asked
    running: set[str]

    def events(self, has_left: HasLeft) -> Generator[Event, None, None]:
        """In a worker thread. Once the whole answer is there it is stored: that is the change."""
        self.running.add(self.asked.answer_id)
        try:
            asked = replace(self.asked, is_cancelled=has_left)
            with closing(self.services.answer(self.principal, asked)) as events:
                for event in events:
                    if event["type"] == "answer.completed":
                        self._write_audit()
                    yield event
        finally:
            self.running.discard(self.asked.answer_id)

    def _write_audit(self) -> None:
        write_audit(
            self.services, self.asked.trace_id, self.principal, "answer.add", self.asked.answer_id
        )
