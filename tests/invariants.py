"""What must hold after every fault, checked on the catalog and the index themselves.

1. Every accepted document has a final status.
2. A searchable document has exactly as many points as chunks, and more than none.
3. No points without a right to exist: each generation in the index is active, or known to be dead
   and waiting for its purge.
4. No part is left over: whatever was started is done, or failed with a reason.
"""

from collections.abc import Mapping

from core.domain.access import Principal
from core.domain.documents import DocumentRecord, DocumentStatus
from core.errors import NotFound
from core.ports.catalog import Catalog
from core.ports.vector_index import VectorIndex

SEARCHABLE = frozenset({DocumentStatus.READY, DocumentStatus.PARTIAL})


def violations(catalog: Catalog, index: VectorIndex, principal: Principal) -> list[str]:
    """Every broken invariant of a tenant, in words; empty when all hold."""
    found: list[str] = []
    records = _records(catalog, principal)
    active: dict[str, str] = {}
    for record in records.values():
        found += _of_document(catalog, principal, record)
        try:
            with catalog.snapshot(principal) as snapshot:
                active[record.document_id] = snapshot.version(record.document_id).generation_id
        except NotFound:
            continue
    for record in records.values():
        generation_id = active.get(record.document_id)
        if record.status in SEARCHABLE:
            found += _of_points(index, principal, record, generation_id)
    strays = [
        (document_id, generation_id)
        for document_id, generation_id in index.generations(principal)
        if active.get(document_id) != generation_id
    ]
    if strays:  # asking claims them for a purge, so it is done only when there is a reason
        dead = catalog.operations.dead_generations(older_than_s=0.0, limit=100_000)
        dying = {generation.generation_id for generation in dead}
        found += [
            f"points of {document_id} {generation_id} have no right to exist"
            for document_id, generation_id in strays
            if generation_id not in dying
        ]
    return found


def _records(catalog: Catalog, principal: Principal) -> Mapping[str, DocumentRecord]:
    found: dict[str, DocumentRecord] = {}
    cursor: str | None = None
    while True:
        with catalog.snapshot(principal) as snapshot:
            page, cursor = snapshot.documents(cursor=cursor, limit=200)
        found |= {record.document_id: record for record in page}
        if cursor is None:
            return found


def _of_document(catalog: Catalog, principal: Principal, record: DocumentRecord) -> list[str]:
    if not record.status.is_final:
        return [f"{record.key} is still {record.status}: {record.problem}"]
    if record.job_id is None:
        return [f"{record.key} has no job"]
    with catalog.snapshot(principal) as snapshot:
        job = snapshot.job(record.job_id)
    found = []
    for stage, states in job.stages.items():
        open_parts = {state: count for state, count in states.items() if count and state in _OPEN}
        if open_parts:
            found.append(f"{record.key}: stage {stage} has open parts {open_parts}")
    if job.finished_at is None:
        found.append(f"{record.key}: its job never finished")
    return found


def _of_points(
    index: VectorIndex, principal: Principal, record: DocumentRecord, generation_id: str | None
) -> list[str]:
    if generation_id is None:
        return [f"{record.key} is {record.status} and has no active generation"]
    num_points = index.count(principal, record.document_id, generation_id)
    if num_points != record.num_chunks or not num_points:
        return [f"{record.key} has {num_points} points and {record.num_chunks} chunks"]
    return []


_OPEN = frozenset({"waiting", "leased"})
