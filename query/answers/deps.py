"""What making an answer needs, built once a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.artifacts import Artifacts
from core.factory import system_clock
from core.ports.catalog import Catalog
from core.ports.clock import Clock
from core.ports.generator import Generator
from core.ports.models import Embedder
from core.ports.vector_index import VectorIndex
from core.settings import Settings
from query.answers.answerability import is_answerable
from query.answers.evidence import Evidence
from query.answers.generating import GenerationLoop, PrefixLengths
from query.answers.modes import ReadGate
from query.retrieval.reranking import Reranked
from query.retrieval.search import RetrievalDeps


def never_run(_fingerprint: str) -> None:
    """The verdict of a gate that was never tried."""


@dataclass(frozen=True, slots=True)
class AnswerDeps:
    """Everything an answer needs, one set per process; all of it safe in threads.

    is_answerable: decides whether evidence (best first) answers a question.
    generator: what writes; None: every answer quotes. read_gate: whether a generator may in `auto`.
    """

    catalog: Catalog
    artifacts: Artifacts
    index: VectorIndex
    embedder: Embedder
    settings: Settings
    clock: Clock = field(default_factory=system_clock)
    is_answerable: Callable[[Reranked, Sequence[Evidence]], bool] = is_answerable
    generator: Generator | None = None
    read_gate: ReadGate = never_run
    generations: GenerationLoop = field(default_factory=GenerationLoop)
    prefix_lengths: PrefixLengths = field(default_factory=PrefixLengths)

    @property
    def retrieval(self) -> RetrievalDeps:
        return RetrievalDeps(self.index, self.embedder, self.clock, self.settings.retrieval)
