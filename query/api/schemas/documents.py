"""Documents, their pages, and the jobs that make them searchable."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from core.domain.documents import Accepted, DocumentProblem, DocumentRecord, IngestJob
from core.domain.documents import DocumentStatus as Status
from core.domain.pages import Page
from query.api.schemas.base import Rect, Sent


class ProblemOfDocument(Sent):
    code: str
    message: str
    hint: str | None

    @classmethod
    def of(cls, problem: DocumentProblem | None) -> ProblemOfDocument | None:
        if problem is None:
            return None
        return cls(code=problem.code, message=problem.message, hint=problem.hint)


class Document(Sent):
    object: Literal["pincite.document"] = "pincite.document"
    document_id: str
    collection: str
    bucket: str
    key: str
    title: str
    status: Status = Field(description="derived from the work on the newest version")
    version_seq: int
    version: str | None = Field(description="sha256:<hex> of the newest bytes, once known")
    active_version_seq: int | None = Field(description="what can be found now; null: nothing yet")
    size_bytes: int
    content_type: str | None
    pages_done: int
    pages_total: int | None
    num_chunks: int | None
    attempts: int
    problem: ProblemOfDocument | None
    warnings: tuple[str, ...]
    failed_pages: tuple[int, ...]
    job_id: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, record: DocumentRecord) -> Document:
        return cls(
            document_id=record.document_id,
            collection=record.collection,
            bucket=record.bucket,
            key=record.key,
            title=record.title,
            status=record.status,
            version_seq=record.version_seq,
            version=f"sha256:{record.sha256}" if record.sha256 else None,
            active_version_seq=record.active_version_seq,
            size_bytes=record.size_bytes,
            content_type=record.content_type,
            pages_done=record.pages_done,
            pages_total=record.pages_total,
            num_chunks=record.num_chunks,
            attempts=record.attempts,
            problem=ProblemOfDocument.of(record.problem),
            warnings=record.warnings,
            failed_pages=record.failed_pages,
            job_id=record.job_id,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )


class AcceptedUpload(Sent):
    document_id: str
    version_seq: int
    version: str
    job_id: str
    is_new: bool = Field(description="false: these very bytes were there already")
    bucket: str
    key: str

    @classmethod
    def of(cls, accepted: Accepted, *, sha256: str, bucket: str, key: str) -> AcceptedUpload:
        return cls(
            document_id=accepted.document_id,
            version_seq=accepted.version_seq,
            version=f"sha256:{sha256}",
            job_id=accepted.job_id,
            is_new=accepted.is_new,
            bucket=bucket,
            key=key,
        )


class Job(Sent):
    object: Literal["pincite.ingest_job"] = "pincite.ingest_job"
    job_id: str
    document_id: str
    version_seq: int
    status: Status
    stages: dict[str, dict[str, int]] = Field(description="stage -> state of its parts -> count")
    problem: ProblemOfDocument | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, job: IngestJob) -> Job:
        return cls(
            job_id=job.job_id,
            document_id=job.document_id,
            version_seq=job.version_seq,
            status=job.status,
            stages=job.stages,
            problem=ProblemOfDocument.of(job.problem),
            created_at=job.created_at,
            finished_at=job.finished_at,
        )


class Collection(Sent):
    name: str
    num_documents: int


class PrintedLine(Sent):
    """`text[start:end]`, and where it stands: 0..1 of the page as displayed."""

    start: int
    end: int
    rect: Rect


class PageText(Sent):
    """One page of one version: the text that quotes are cut from (offsets are code points)."""

    document_id: str
    version: str
    page: int
    num_pages: int
    label: str = Field(description="the printed page number")
    width: float = Field(description="points, as displayed")
    height: float
    text: str
    outcome: str
    lines: list[PrintedLine]

    @classmethod
    def of(cls, document_id: str, sha256: str, num_pages: int, page: Page) -> PageText:
        return cls(
            document_id=document_id,
            version=f"sha256:{sha256}",
            page=page.number,
            num_pages=num_pages,
            label=page.label,
            width=page.width,
            height=page.height,
            text=page.text,
            outcome=page.outcome.value,
            lines=[
                PrintedLine(start=line.start, end=line.end, rect=line.rect) for line in page.lines
            ],
        )


class QuoteRects(Sent):
    """Rectangles that cover exactly the words of `text[start:end]`, one a printed line."""

    page: int
    start: int
    end: int
    rects: list[Rect]
