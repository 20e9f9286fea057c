"""Domain objects as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from core.domain.documents import DocumentProblem, DocumentRecord, IngestJob
from core.domain.operations import IngestCounts


def page_of(data: list[dict[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    """The shape of every list."""
    return {"data": data, "next_cursor": next_cursor}


def document_json(record: DocumentRecord) -> dict[str, Any]:
    return {
        "object": "pincite.document",
        "document_id": record.document_id,
        "collection": record.collection,
        "bucket": record.bucket,
        "key": record.key,
        "title": record.title,
        "status": record.status.value,
        "version_seq": record.version_seq,
        "version": f"sha256:{record.sha256}" if record.sha256 else None,
        "active_version_seq": record.active_version_seq,
        "size_bytes": record.size_bytes,
        "content_type": record.content_type,
        "pages_done": record.pages_done,
        "pages_total": record.pages_total,
        "num_chunks": record.num_chunks,
        "attempts": record.attempts,
        "problem": _problem_json(record.problem),
        "warnings": list(record.warnings),
        "failed_pages": list(record.failed_pages),
        "job_id": record.job_id,
        "created_at": _time(record.created_at),
        "updated_at": _time(record.updated_at),
    }


def job_json(job: IngestJob) -> dict[str, Any]:
    return {
        "object": "pincite.ingest_job",
        "job_id": job.job_id,
        "document_id": job.document_id,
        "version_seq": job.version_seq,
        "status": job.status.value,
        "stages": job.stages,
        "problem": _problem_json(job.problem),
        "created_at": _time(job.created_at),
        "finished_at": _time(job.finished_at) if job.finished_at else None,
    }


def counts_json(counts: IngestCounts) -> dict[str, Any]:
    return {
        "queue_depth": counts.queue_depth,
        "oldest_age_s": round(counts.oldest_age_s, 3),
        "documents": {status.value: count for status, count in counts.documents.items()},
        "stages": {
            stage.value: {
                "waiting": numbers.waiting,
                "leased": numbers.leased,
                "failed": numbers.failed,
                "pages_waiting": numbers.pages_waiting,
                "oldest_age_s": round(numbers.oldest_age_s, 3),
            }
            for stage, numbers in counts.stages.items()
        },
        "outbox_pending": counts.outbox_pending,
        "expired_leases": counts.expired_leases,
        "num_chunks_active": counts.num_chunks_active,
        "num_pages_active": counts.num_pages_active,
    }


def _problem_json(problem: DocumentProblem | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}


def _time(moment: datetime) -> str:
    return moment.isoformat()
