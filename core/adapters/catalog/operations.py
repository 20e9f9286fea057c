"""What the sweeper and the operations page need."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, or_, select, update

from core.adapters.catalog import counting, purging
from core.adapters.catalog.database import clean, insert_new
from core.adapters.catalog.tables import audit, heartbeats, leaders, tenants
from core.adapters.catalog.work import MAX_CLOCK_SKEW_S
from core.domain.operations import Heartbeat

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from core.adapters.catalog.database import Database
    from core.domain.access import Principal
    from core.domain.operations import DeadContent, DeadGeneration, IngestCounts
    from core.ports.clock import Clock

_FORGET_HEARTBEATS_S = 86_400.0


class SqlOperations:
    """Implements `core.ports.catalog.OperationsCatalog`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def take_leadership(self, name: str, *, owner: str, lease_s: float) -> bool:
        def work(tx: Connection) -> bool:
            now = self._clock.now()
            term = {
                "owner": owner,
                "granted_at": now,
                "expires_at": now + timedelta(seconds=lease_s),
            }
            if insert_new(tx, leaders, [{"name": name, **term}]):
                return True
            is_free = or_(
                leaders.c.owner == owner,
                leaders.c.expires_at <= now,
                leaders.c.granted_at > now + timedelta(seconds=MAX_CLOCK_SKEW_S),
            )
            taken = tx.execute(
                update(leaders).where(leaders.c.name == name, is_free).values(**term)
            )
            return taken.rowcount == 1

        return self._db.write(work)

    def counts(self, tenant_id: str | None = None) -> IngestCounts:
        now = self._clock.now()
        return self._db.read(lambda tx: counting.counts(tx, now, tenant_id))

    def beat(self, heartbeat: Heartbeat) -> None:
        row = asdict(heartbeat)
        forgotten = heartbeat.seen_at - timedelta(seconds=_FORGET_HEARTBEATS_S)

        def work(tx: Connection) -> None:
            same = heartbeats.c.process == heartbeat.process
            if tx.execute(update(heartbeats).where(same).values(**row)).rowcount == 0:
                insert_new(tx, heartbeats, [row])
                tx.execute(delete(heartbeats).where(heartbeats.c.seen_at < forgotten))

        self._db.write(work)

    def heartbeats(self, *, max_age_s: float) -> list[Heartbeat]:
        since = self._clock.now() - timedelta(seconds=max_age_s)
        query = (
            select(heartbeats)
            .where(heartbeats.c.seen_at >= since)
            .order_by(heartbeats.c.role, heartbeats.c.process)
        )
        rows = self._db.read(lambda tx: tx.execute(query).mappings().all())
        return [Heartbeat(**row) for row in rows]

    def dead_generations(self, *, older_than_s: float, limit: int) -> list[DeadGeneration]:
        now = self._clock.now()
        return self._db.write(
            lambda tx: purging.dead_generations(tx, now, older_than_s=older_than_s, limit=limit)
        )

    def mark_purged(self, generation_id: str) -> None:
        now = self._clock.now()
        self._db.write(lambda tx: purging.mark_purged(tx, generation_id, now))

    def take_dead_content(self, *, retention_s: float, limit: int) -> list[DeadContent]:
        now = self._clock.now()
        return self._db.write(
            lambda tx: purging.take_dead_content(tx, now, retention_s=retention_s, limit=limit)
        )

    def finish_dead_content(self, content: DeadContent) -> None:
        now = self._clock.now()
        self._db.write(lambda tx: purging.finish_dead_content(tx, content, now))

    def is_live_generation(self, document_id: str, generation_id: str) -> bool:
        return self._db.read(lambda tx: purging.is_live_generation(tx, document_id, generation_id))

    def average_terms(self) -> float | None:
        return self._db.read(purging.average_terms)

    def tenants(self) -> list[str]:
        query = select(tenants.c.tenant_id).order_by(tenants.c.tenant_id)
        return [str(row.tenant_id) for row in self._db.read(lambda tx: tx.execute(query).all())]

    def audit(
        self, principal: Principal, *, action: str, target: str, request_id: str, outcome: str
    ) -> None:
        row = {
            "tenant_id": principal.tenant_id,
            "subject": principal.subject,
            "key_id": principal.key_id,
            "action": clean(action, 200),
            "target": clean(target),
            "request_id": clean(request_id, 200),
            "outcome": clean(outcome, 200),
            "created_at": self._clock.now(),
        }
        self._db.write(lambda tx: tx.execute(audit.insert().values(**row)))
