"""What the routes need, built once a process and handed in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import Accepted, ObservedObject, Queue
from core.domain.generation import ChatMessage
from core.ports.catalog import Catalog
from core.ports.chat_proxy import ChatProxy
from core.ports.clock import Clock
from core.ports.generator import Generator as TextGenerator
from core.ports.job_queue import JobQueue
from core.ports.models import Embedder
from core.ports.object_store import ObjectStore
from core.ports.page_renderer import PageRenderer
from core.ports.vector_index import VectorIndex
from core.settings import Settings


class Accept(Protocol):
    """Announce an object to the pipeline (ingest knows the fingerprints, query does not)."""

    def __call__(
        self, principal: Principal, observed: ObservedObject, *, queue: Queue
    ) -> Accepted: ...


AnswerModeChoice: TypeAlias = Literal["auto", "extractive", "generative"] | None


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under the id that its answer will have.

    Empty tuples do not narrow. trace_id: the id of the request, for whoever reads the answer beside
    the log. mode, max_tokens: None for the settings'. history: earlier turns, oldest first, user
    and assistant by turns, exactly as they were sent. standalone: the question as it is understood
    without the history, which is what is searched; empty: it stands alone. condense_ms: what making
    it took. is_cancelled: asked from the worker thread while it waits for the generator; true stops
    the work at once.
    """

    answer_id: str
    question: str
    collections: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()
    trace_id: str = ""
    mode: AnswerModeChoice = None
    max_tokens: int | None = None
    conversation_id: str | None = None
    history: tuple[ChatMessage, ...] = ()
    standalone: str = ""
    condense_ms: float = 0.0
    is_cancelled: Callable[[], bool] = never


class AnswerQuestion(Protocol):
    """Answer and store; events as JSON objects with `type` and `seq`, the last one is
    `answer.completed` or `error`. Closing the generator, or `is_cancelled`, stops the work: then
    nothing more comes, and nothing is stored."""

    def __call__(
        self, principal: Principal, asked: Asked
    ) -> Generator[dict[str, Any], None, None]: ...


@dataclass(frozen=True, slots=True)
class Services:
    """`tenant_ids`: documents bucket -> the tenant that owns it. `generator`: None where no
    language model is configured."""

    settings: Settings
    catalog: Catalog
    store: ObjectStore
    artifacts: Artifacts
    renderer: PageRenderer
    job_queue: JobQueue
    clock: Clock
    index: VectorIndex
    embedder: Embedder
    answer: AnswerQuestion
    accept: Accept
    tenant_ids: Mapping[str, str]
    close: Callable[[], None]
    version: str = ""
    generator: TextGenerator | None = None
    chat_proxy: ChatProxy | None = None
