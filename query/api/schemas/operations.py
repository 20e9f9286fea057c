"""The ingest queue, who the caller is, and what this service is."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from core.domain.operations import Heartbeat, IngestCounts, StageCounts
from core.ports.job_queue import BrokerDepth
from query.api.schemas.base import Sent


class StageState(Sent):
    waiting: int
    leased: int
    failed: int
    pages_waiting: int
    oldest_age_s: float

    @classmethod
    def of(cls, counts: StageCounts) -> StageState:
        return cls(
            waiting=counts.waiting,
            leased=counts.leased,
            failed=counts.failed,
            pages_waiting=counts.pages_waiting,
            oldest_age_s=round(counts.oldest_age_s, 3),
        )


class BrokerState(Sent):
    """The broker's own count, beside the catalog's. `problem`: why there is none."""

    ready: dict[str, int] = Field(default_factory=dict)
    unacked: int | None = None
    problem: str | None = None

    @classmethod
    def of(cls, depth: BrokerDepth) -> BrokerState:
        ready = {queue.value: count for queue, count in depth.ready.items()}
        return cls(ready=ready, unacked=depth.unacked)


class ProcessState(Sent):
    process: str
    role: str
    pid: int
    host: str
    version: str
    started_at: datetime
    seen_at: datetime
    doing: str | None = Field(description="the document being worked on, if the caller may see it")
    rss_bytes: int | None

    @classmethod
    def of(cls, beat: Heartbeat, doing: str | None) -> ProcessState:
        return cls(
            process=beat.process,
            role=beat.role,
            pid=beat.pid,
            host=beat.host,
            version=beat.version,
            started_at=beat.started_at,
            seen_at=beat.seen_at,
            doing=doing,
            rss_bytes=beat.rss_bytes,
        )


class IngestState(Sent):
    """All from one reading of the catalog, but for `broker`."""

    queue_depth: int
    oldest_age_s: float
    documents: dict[str, int] = Field(description="status -> number of documents")
    stages: dict[str, StageState]
    outbox_pending: int
    expired_leases: int
    num_chunks_active: int
    num_pages_active: int
    broker: BrokerState
    processes: list[ProcessState]

    @classmethod
    def of(
        cls, counts: IngestCounts, broker: BrokerState, processes: list[ProcessState]
    ) -> IngestState:
        return cls(
            queue_depth=counts.queue_depth,
            oldest_age_s=round(counts.oldest_age_s, 3),
            documents={status.value: count for status, count in counts.documents.items()},
            stages={stage.value: StageState.of(found) for stage, found in counts.stages.items()},
            outbox_pending=counts.outbox_pending,
            expired_leases=counts.expired_leases,
            num_chunks_active=counts.num_chunks_active,
            num_pages_active=counts.num_pages_active,
            broker=broker,
            processes=processes,
        )


class Hints(Sent):
    hints: int = Field(description="how many objects will be looked at")


class About(Sent):
    name: str
    version: str
    license: str
    source: str = Field(description="where the source of this running service is")


class Me(Sent):
    subject: str
    scopes: list[str]
    collections: list[str] | None = Field(description="null: all of the tenant")
    max_upload_bytes: int
    max_question_chars: int
