"""What operators look at: queue depth, heartbeats, leftovers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from core.domain.access import Scope
    from core.domain.documents import DocumentStatus, Queue, Stage


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    message_id: int
    part_id: str
    queue: Queue


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """`secret` is None except in the answer to its creation."""

    key_id: str
    name: str
    scopes: frozenset[Scope]
    collections: frozenset[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class StageCounts:
    """Parts of one stage by state. Ages in seconds of the longest waiting or leased part."""

    waiting: int = 0
    leased: int = 0
    failed: int = 0
    pages_waiting: int = 0
    oldest_age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class IngestCounts:
    """Depth of the queue as the catalog knows it (waiting + leased), whatever the broker says."""

    documents: dict[DocumentStatus, int] = field(default_factory=dict)
    stages: dict[Stage, StageCounts] = field(default_factory=dict)
    queue_depth: int = 0
    oldest_age_s: float = 0.0
    outbox_pending: int = 0
    expired_leases: int = 0
    num_chunks_active: int = 0
    num_pages_active: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`process` is unique per process: host:pid:role."""

    process: str
    role: str
    pid: int
    host: str
    started_at: datetime
    seen_at: datetime
    doing: str | None = None  # the document id being worked on
    rss_bytes: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class DeadGeneration:
    tenant_id: str
    document_id: str
    generation_id: str


@dataclass(frozen=True, slots=True)
class DeadContent:
    """All artifacts of these bytes (original, elements, chunks, vectors, pictures) may go."""

    tenant_id: str
    sha256: str
