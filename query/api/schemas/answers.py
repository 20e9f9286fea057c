"""Questions, passages and answers (docs/decisions/0005-answer-format.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from core.domain.answers import AnswerMode, AnswerStatus, Verdict
from query.api.schemas.base import DocumentId, Received, Rect, Sent

Name = Annotated[str, StringConstraints(min_length=1, max_length=900)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Narrowing(Received):
    """Within what the caller may see. Empty: everything."""

    collections: list[Name] = Field([], max_length=100)
    document_ids: list[DocumentId] = Field([], max_length=100)


class AnswerRequest(Narrowing):
    question: Text
    mode: Literal["auto", "extractive", "generative"] | None = Field(
        None, description="null: as configured (`answer.mode`)"
    )
    max_tokens: int | None = Field(
        None, ge=1, le=4096, description="of a written answer; null: as configured"
    )
    conversation_id: str | None = Field(
        None, description="of POST /v1/conversations: earlier turns make follow-ups understood"
    )
    stream: bool = Field(False, description="events instead of one object; as `Accept` also says")
    background: bool = Field(False, description="go on, and store it, when the client leaves")


class ConversationRequest(Received):
    title: str = Field("", max_length=200, description="empty: the first question")


class Conversation(Sent):
    id: str
    object: Literal["pincite.conversation"] = "pincite.conversation"
    title: str
    created_at: str
    num_answers: int


class SearchRequest(Narrowing):
    query: Text
    limit: int = Field(8, ge=1, le=50)


class Location(Sent):
    """A place in the page's text (code points), and on the page as displayed (0..1)."""

    page: int
    start: int
    end: int
    rects: list[Rect]


class Scores(Sent):
    """Only with scope `explain`."""

    dense: float | None = None
    dense_rank: int | None = None
    lexical: float | None = None
    lexical_rank: int | None = None
    fused: float
    rerank: float | None = None


class FoundPassage(Sent):
    chunk_id: str
    document_id: str
    version: str
    title: str
    collection: str
    pages: list[int]
    text: str
    heading_path: list[str]
    locations: list[Location]
    view_url: str
    scores: Scores | None = None


class SearchTimings(Sent):
    embed_ms: float
    search_ms: float
    rerank_ms: float
    total_ms: float


class SearchResult(Sent):
    data: list[FoundPassage]
    timings: SearchTimings


class Range(Sent):
    """`[start, end)` in code points of the answer's text."""

    start: int
    end: int


class Quote(Sent):
    source_id: str
    quote: str | None = Field(description="verbatim; null once the document is deleted")
    locations: list[Location]
    deleted: bool = False


class Citation(Sent):
    id: str
    n: int
    start: int
    end: int
    marker: Range
    verdict: Verdict
    support_score: float
    sources: list[Quote]


class WrittenSentence(Sent):
    """`is_replaced`: what was written was not supported; the quote was sent instead of it."""

    start: int
    end: int
    verdict: Verdict
    support_score: float
    citation_ids: list[str]
    is_replaced: bool


class Source(Sent):
    id: str
    document_id: str
    version: str
    title: str
    collection: str
    chunk_id: str
    pages: list[int]
    page_size: dict[str, tuple[float, float]]
    uri: str
    view_url: str
    scores: Scores | None = None


class TokenUsage(Sent):
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    draft_tokens: int
    accepted_tokens: int


class AnswerTimings(Sent):
    condense_ms: float
    embed_ms: float
    search_ms: float
    rerank_ms: float
    queue_ms: float
    ttft_ms: float
    total_ms: float


class Answer(Sent):
    """The same object streamed, stored and loaded again."""

    id: str
    object: Literal["pincite.answer"]
    schema_version: int
    created_at: str
    question: str
    answer_status: AnswerStatus
    mode: AnswerMode
    mode_reason: str = Field("", description="why this mode was used: see docs/answers.md")
    conversation_id: str | None = None
    text: str
    citations: list[Citation]
    sentences: list[WrittenSentence] = Field([], description="of a written answer, in order")
    sources: list[Source]
    missing: list[str]
    usage: TokenUsage
    timings: AnswerTimings
    index_generation: str
    model: str | None
    trace_id: str
