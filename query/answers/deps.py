"""What making an answer needs, built once a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.artifacts import Artifacts
from core.factory import system_clock
from core.ports.catalog import Catalog
from core.ports.clock import Clock
from core.ports.models import Embedder
from core.ports.vector_index import VectorIndex
from core.settings import Settings
from query.answers.answerability import is_answerable
from query.answers.evidence import Evidence
from query.retrieval.reranking import Reranked
from query.retrieval.search import RetrievalDeps


@dataclass(frozen=True, slots=True)
class AnswerDeps:
    """Everything an answer needs, one set per process; all of it safe in threads.

    `is_answerable` decides whether evidence (best first) answers a question.
    """

    catalog: Catalog
    artifacts: Artifacts
    index: VectorIndex
    embedder: Embedder
    settings: Settings
    clock: Clock = field(default_factory=system_clock)
    is_answerable: Callable[[Reranked, Sequence[Evidence]], bool] = is_answerable

    @property
    def retrieval(self) -> RetrievalDeps:
        return RetrievalDeps(self.index, self.embedder, self.clock, self.settings.retrieval)
