"""What the routes need, built once a process and handed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import Accepted, ObservedObject, Queue
from core.ports.catalog import Catalog
from core.ports.job_queue import JobQueue
from core.ports.object_store import ObjectStore
from core.ports.page_renderer import PageRenderer
from core.settings import Settings
from query.answers.answering import AnswerDeps


class Accept(Protocol):
    """Announce an object to the pipeline (ingest knows the fingerprints, query does not)."""

    def __call__(
        self, principal: Principal, observed: ObservedObject, *, queue: Queue
    ) -> Accepted: ...


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    catalog: Catalog
    store: ObjectStore
    artifacts: Artifacts
    renderer: PageRenderer
    job_queue: JobQueue
    answering: AnswerDeps
    accept: Accept
    close: Callable[[], None]
    version: str = ""
