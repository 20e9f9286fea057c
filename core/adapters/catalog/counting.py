"""Queue depth and document states by SQL aggregation, never by a loop over documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import case, func, or_, select

from core.adapters.catalog.records import is_unpurged
from core.adapters.catalog.status import facts_key, status_of
from core.adapters.catalog.tables import documents, generations, outbox, parts
from core.adapters.catalog.work import has_expired
from core.domain.documents import DocumentStatus, PartState, Stage
from core.domain.operations import IngestCounts, StageCounts

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, FromClause

# Named one by one, so that the index on the state is used and finished parts are not looked at.
_NOT_DONE = [state.value for state in PartState if state is not PartState.DONE]


def counts(tx: Connection, now: datetime, tenant_id: str | None) -> IngestCounts:
    """See `OperationsCatalog.counts`."""
    stages = _stages(tx, now, tenant_id)
    chunks, pages = _active(tx, tenant_id)
    return IngestCounts(
        documents=_documents(tx, tenant_id),
        stages=stages,
        queue_depth=sum(stage.waiting + stage.leased for stage in stages.values()),
        oldest_age_s=max((stage.oldest_age_s for stage in stages.values()), default=0.0),
        outbox_pending=_num(tx, outbox, outbox.c.sent_at.is_(None), tenant_id),
        expired_leases=_num(tx, parts, has_expired(now), tenant_id),
        num_chunks_active=chunks,
        num_pages_active=pages,
    )


def _documents(tx: Connection, tenant_id: str | None) -> dict[DocumentStatus, int]:
    facts = (
        select(facts_key().label("facts"))
        .select_from(documents)
        .join(generations, generations.c.generation_id == documents.c.shown_generation_id)
        .where(is_unpurged(), _of_tenant(documents, tenant_id))
        .subquery()
    )
    found = dict.fromkeys(DocumentStatus, 0)
    for row in tx.execute(select(facts.c.facts, func.count().label("num")).group_by(facts.c.facts)):
        found[status_of(row.facts)] += row.num
    return found


def _stages(tx: Connection, now: datetime, tenant_id: str | None) -> dict[Stage, StageCounts]:
    """Open parts of generations that are worked on, and failed ones that may be retried."""
    last = case(
        (parts.c.last > generations.c.page_count, generations.c.page_count), else_=parts.c.last
    )
    rows = tx.execute(
        select(
            parts.c.stage,
            parts.c.state,
            func.count().label("num"),
            func.min(parts.c.created_at).label("oldest"),
            func.sum(last - parts.c.first + 1).label("pages"),
        )
        .join(generations, generations.c.generation_id == parts.c.generation_id)
        .where(
            parts.c.state.in_(_NOT_DONE),
            generations.c.superseded_at.is_(None),
            or_(parts.c.state != PartState.WAITING.value, generations.c.failed_at.is_(None)),
            _of_tenant(parts, tenant_id),
        )
        .group_by(parts.c.stage, parts.c.state)
    ).all()
    found: dict[Stage, StageCounts] = {}
    for stage in Stage:
        by_state = {PartState(row.state): row for row in rows if row.stage == stage.value}
        waiting = by_state.get(PartState.WAITING)
        oldest = [r.oldest for s, r in by_state.items() if s is not PartState.FAILED]
        found[stage] = StageCounts(
            waiting=waiting.num if waiting else 0,
            leased=by_state[PartState.LEASED].num if PartState.LEASED in by_state else 0,
            failed=by_state[PartState.FAILED].num if PartState.FAILED in by_state else 0,
            pages_waiting=int(waiting.pages) if waiting and stage is Stage.PARSE else 0,
            oldest_age_s=max((max(0.0, (now - at).total_seconds()) for at in oldest), default=0.0),
        )
    return found


def _active(tx: Connection, tenant_id: str | None) -> tuple[int, int]:
    row = tx.execute(
        select(
            func.coalesce(func.sum(generations.c.num_chunks), 0).label("chunks"),
            func.coalesce(func.sum(generations.c.page_count), 0).label("pages"),
        )
        .select_from(documents)
        .join(generations, generations.c.generation_id == documents.c.active_generation_id)
        .where(_of_tenant(documents, tenant_id))
    ).one()
    return int(row.chunks), int(row.pages)


def _num(
    tx: Connection, table: FromClause, which: ColumnElement[bool], tenant_id: str | None
) -> int:
    query = select(func.count()).select_from(table).where(which, _of_tenant(table, tenant_id))
    return int(tx.execute(query).scalar_one())


def _of_tenant(table: FromClause, tenant_id: str | None) -> ColumnElement[bool]:
    column = table.c.tenant_id
    return column.is_not(None) if tenant_id is None else column == tenant_id
