"""The answer object: one internal object, every API shape is a projection of it (answers.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.domain.pages import Location
    from core.domain.search import RetrievalScores

SCHEMA_VERSION = 1


class AnswerStatus(StrEnum):
    ANSWERED = "answered"
    PARTIAL = "partial"
    NOT_IN_DOCUMENTS = "not_in_documents"
    REFUSED = "refused"
    ERROR = "error"


class AnswerMode(StrEnum):
    EXTRACTIVE = "extractive"
    GENERATIVE = "generative"


class Verdict(StrEnum):
    SUPPORTED = "supported"
    WEAK = "weak"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class TextRange:
    """`[start, end)` in code points of the answer's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CitedQuote:
    """A verbatim quote of one source; `quote` is None once its document is deleted."""

    source_id: str
    quote: str | None
    locations: tuple[Location, ...]
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """`n` is what the marker [n] shows; `start`/`end` is the answer text it supports."""

    id: str
    n: int
    start: int
    end: int
    marker: TextRange
    verdict: Verdict
    support_score: float
    sources: tuple[CitedQuote, ...]


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """The verdict on one sentence of a written answer: `[start, end)` of the text without its
    markers' white space. `is_replaced`: the generator's words were not supported, and the verbatim
    quote was sent instead of them."""

    start: int
    end: int
    verdict: Verdict
    support_score: float
    citation_ids: tuple[str, ...] = ()
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """One chunk that the answer draws on, with the version that pins its bytes."""

    id: str
    document_id: str
    version: str  # "sha256:<hex>"
    title: str
    collection: str
    chunk_id: str
    pages: tuple[int, ...]
    page_size: dict[int, tuple[float, float]]  # points, as displayed
    uri: str
    view_url: str
    scores: RetrievalScores | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    condense_ms: float = 0.0
    embed_ms: float = 0.0
    search_ms: float = 0.0
    rerank_ms: float = 0.0
    queue_ms: float = 0.0
    ttft_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    id: str
    question: str
    answer_status: AnswerStatus
    mode: AnswerMode
    text: str
    citations: tuple[Citation, ...]
    sources: tuple[AnswerSource, ...]
    sentences: tuple[AnswerSentence, ...] = ()
    missing: tuple[str, ...] = ()
    mode_reason: str = ""  # why this mode was used, a stable word (query.answers.modes)
    conversation_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    index_generation: str = ""
    model: str | None = None
    trace_id: str = ""
    created_at: str = ""
    schema_version: int = SCHEMA_VERSION
