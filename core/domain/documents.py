"""Documents, versions, generations, and the work that makes them searchable."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class DocumentStatus(StrEnum):
    """Derived from the parts of the newest version, never stored beside them (contracts.md)."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    PARTIAL = "partial"
    NEEDS_OCR = "needs_ocr"
    NEEDS_PASSWORD = "needs_password"  # a status, not a secret
    UNSUPPORTED = "unsupported"
    CORRUPT = "corrupt"
    TOO_LARGE = "too_large"
    QUARANTINED = "quarantined"
    DELETING = "deleting"

    @property
    def is_final(self) -> bool:
        return self not in {self.QUEUED, self.PROCESSING, self.DELETING}


class Stage(StrEnum):
    PARSE = "parse"
    CHUNK = "chunk"
    EMBED = "embed"
    INDEX = "index"
    ACTIVATE = (
        "activate"  # the closing part of the index stage: count the points, flip the generation
    )


class PartState(StrEnum):
    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


class Queue(StrEnum):
    INTERACTIVE = "interactive"  # somebody waits for this document
    BULK = "bulk"


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """An object as its store describes it. `etag` is without quotes."""

    bucket: str
    key: str
    etag: str
    size_bytes: int
    last_modified: datetime
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """Something that lies in a bucket and should be ingested. `sha256` is known for API uploads."""

    bucket: str
    key: str
    etag: str
    size_bytes: int
    last_modified: datetime | None = None
    sha256: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class KnownObject:
    """What the catalog believes of one key of a bucket (for reconcile)."""

    document_id: str
    key: str
    etag: str
    size_bytes: int
    is_deleted: bool
    tombstone_etag: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of announcing an object. `is_new` is False for a no-op on the same bytes."""

    document_id: str
    version_seq: int
    generation_id: str
    job_id: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part to be worked on. `first`/`last` are 1-based pages (parse) or chunk ordinals from 0,
    both inclusive (embed, index); 0 and 0 for chunk and activate. `last` may be beyond the end of
    the document for the first parse part, whose page count nobody knows yet."""

    stage: Stage
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LeasedPart:
    """The right to work on one part until `expires_at`; `epoch` fences late writers."""

    part_id: str
    epoch: int
    expires_at: datetime
    attempt: int
    stage: Stage
    first: int
    last: int
    tenant_id: str
    document_id: str
    version_seq: int
    generation_id: str
    job_id: str
    queue: Queue
    bucket: str
    key: str
    etag: str
    size_bytes: int
    sha256: str | None
    collection: str
    title: str
    page_count: int | None
    pipeline_fingerprint: str


@dataclass(frozen=True, slots=True)
class PartResult:
    """What completing a part adds to the catalog, in one transaction.

    `same_stage` parts join the open stage (the remaining page ranges, once the page count is
    known); `next_stage` parts are added by whichever part closes the stage. `num_chunks` is the
    document's total; `num_terms`, `num_pages_done` and `failed_pages` add up over the parts that
    report them. `parser_fingerprint` names the stored elements that answers will be cut from.
    """

    same_stage: tuple[NewPart, ...] = ()
    next_stage: tuple[NewPart, ...] = ()
    page_count: int | None = None
    title: str | None = None
    language: str | None = None
    failed_pages: tuple[int, ...] = ()
    num_pages_done: int = 0
    num_chunks: int | None = None
    num_terms: int | None = None
    warnings: tuple[str, ...] = ()
    parser_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class ActiveVersion:
    """A version that a snapshot may show, with what a source of an answer needs."""

    generation_id: str
    document_id: str
    version_seq: int
    sha256: str
    title: str
    collection: str
    bucket: str
    key: str
    page_count: int
    etag: str
    parser_fingerprint: str


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One row of `GET /v1/documents`: the newest version's state beside what is searchable now."""

    document_id: str
    collection: str
    bucket: str
    key: str
    title: str
    status: DocumentStatus
    version_seq: int
    sha256: str | None
    size_bytes: int
    content_type: str | None
    active_version_seq: int | None
    pages_done: int
    pages_total: int | None
    num_chunks: int | None
    attempts: int
    problem: DocumentProblem | None
    created_at: datetime
    updated_at: datetime
    job_id: str | None = None
    warnings: tuple[str, ...] = ()
    failed_pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A user-visible run: one version of one document through the stages."""

    job_id: str
    document_id: str
    version_seq: int
    status: DocumentStatus
    created_at: datetime
    finished_at: datetime | None
    stages: dict[str, dict[str, int]] = field(default_factory=dict)  # stage -> part state -> count
    problem: DocumentProblem | None = None
