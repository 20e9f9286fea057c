"""Leases, attempts and stages of the parts (reliability.md, sections 2 and 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from core.adapters.catalog import activation, delivery, rerun
from core.adapters.catalog.database import clean
from core.adapters.catalog.outcomes import (
    fail_part,
    open_stage,
    put_back,
    record_error,
    record_facts,
    same_stage,
)
from core.adapters.catalog.status import QUARANTINED, failure_of
from core.adapters.catalog.tables import generations, outbox, parts
from core.adapters.catalog.work import (
    add_parts,
    announce,
    as_lease,
    finish_part,
    has_expired,
    held_part,
    is_due,
    lock_part,
    touch,
)
from core.domain.documents import PartState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import AnyRow, Database
    from core.domain.access import Principal
    from core.domain.documents import IngestJob, LeasedPart, PartResult
    from core.domain.operations import OutboxMessage
    from core.ports.clock import Clock

_LOST_WORKER = "worker_lost"


class SqlParts:
    """Implements `core.ports.catalog.PartCatalog`.

    Args:
        max_attempts: leases of one part before it is quarantined.
        republish_after_s: a sent message whose part nobody leased after this is sent again.
        retry_base_s: wait after the first failed attempt; doubles with each further one.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        max_attempts: int,
        republish_after_s: float,
        retry_base_s: float,
    ) -> None:
        self._db = database
        self._clock = clock
        self._max_attempts = max_attempts
        self._republish_after_s = republish_after_s
        self._retry_base_s = retry_base_s

    # ---------------------------------------------------------------------------- leases

    def lease(self, part_id: str, *, owner: str, lease_s: float) -> LeasedPart | None:
        def work(tx: Connection) -> LeasedPart | None:
            now = self._clock.now()
            row = lock_part(tx, part_id)
            if row is None or row.superseded_at is not None or row.failed_at is not None:
                return None
            if row.attempts >= self._max_attempts:
                self._quarantine(tx, row, now)
                return None
            expires_at = now + timedelta(seconds=lease_s)
            taken = tx.execute(
                update(parts)
                .where(
                    parts.c.part_id == part_id,
                    parts.c.epoch == row.epoch,
                    is_due(now) | has_expired(now),
                )
                .values(
                    state=PartState.LEASED.value,
                    epoch=row.epoch + 1,
                    attempts=row.attempts + 1,
                    owner=clean(owner, 200),
                    leased_at=now,
                    expires_at=expires_at,
                    not_before=None,
                )
            )
            if taken.rowcount != 1:
                return None
            tx.execute(delete(outbox).where(outbox.c.part_id == part_id))
            return as_lease(
                row, epoch=row.epoch + 1, attempt=row.attempts + 1, expires_at=expires_at
            )

        return self._db.write(work)

    def _quarantine(self, tx: Connection, row: AnyRow, now: datetime) -> None:
        """Fail a part that used up its attempts without ever reporting (its worker died)."""
        is_free = tx.execute(
            select(parts.c.part_id).where(
                parts.c.part_id == row.part_id, is_due(now) | has_expired(now)
            )
        ).one_or_none()
        if is_free is None:
            return
        if row.error_code is None:
            error = {
                "error_code": _LOST_WORKER,
                "error_message": "the worker was lost each time it worked on this document",
            }
            tx.execute(update(parts).where(parts.c.part_id == row.part_id).values(error))
        fail_part(tx, row, QUARANTINED, now)

    def renew(self, part: LeasedPart, *, lease_s: float) -> LeasedPart:
        def work(tx: Connection) -> LeasedPart:
            now = self._clock.now()
            row = held_part(tx, part)
            expires_at = now + timedelta(seconds=lease_s)
            tx.execute(
                update(parts)
                .where(parts.c.part_id == part.part_id)
                .values(leased_at=now, expires_at=expires_at)
            )
            return as_lease(row, epoch=part.epoch, attempt=part.attempt, expires_at=expires_at)

        return self._db.write(work)

    # --------------------------------------------------------------------------- outcomes

    def set_content(self, part: LeasedPart, *, sha256: str, etag: str) -> str | None:
        now = self._clock.now()
        return self._db.write(
            lambda tx: activation.set_content(tx, part, sha256=sha256, etag=etag, now=now)
        )

    def complete(self, part: LeasedPart, result: PartResult) -> None:
        def work(tx: Connection) -> None:
            now = self._clock.now()
            row = held_part(tx, part)
            finish_part(tx, part, num_terms=result.num_terms or 0, now=now)
            record_facts(tx, part, result)
            added = add_parts(
                tx, part.generation_id, same_stage(part, result), queue=row.queue, now=now
            )
            num_open = tx.execute(
                update(generations)
                .where(generations.c.generation_id == part.generation_id)
                .values(num_open=generations.c.num_open + (added - 1))
                .returning(generations.c.num_open)
            ).scalar_one()
            if num_open == 0:
                open_stage(tx, part, result, queue=row.queue, now=now)
            if row.failed_at is None:
                announce(tx, part.generation_id, now)
            touch(tx, part.document_id, now)

        self._db.write(work)

    def activate(self, part: LeasedPart, *, num_points: int) -> bool:
        now = self._clock.now()
        return self._db.write(
            lambda tx: activation.activate(tx, part, num_points=num_points, now=now)
        )

    def release(self, part: LeasedPart, *, retry_at: datetime, code: str, message: str) -> None:
        def work(tx: Connection) -> None:
            now = self._clock.now()
            row = held_part(tx, part)
            put_back(tx, row, retry_at=retry_at, now=now, attempts=row.attempts - 1)
            record_error(tx, part, code, message, None)

        self._db.write(work)

    def fail(
        self, part: LeasedPart, *, code: str, message: str, hint: str | None, is_final: bool
    ) -> None:
        def work(tx: Connection) -> None:
            now = self._clock.now()
            row = held_part(tx, part)
            record_error(tx, part, code, message, hint)
            if is_final or row.attempts >= self._max_attempts:
                fail_part(tx, row, failure_of(code) if is_final else QUARANTINED, now)
                return
            delay_s = self._retry_base_s * 2.0 ** (row.attempts - 1)
            retry_at = now + timedelta(seconds=delay_s)
            put_back(tx, row, retry_at=retry_at, now=now, attempts=row.attempts)

        self._db.write(work)

    # --------------------------------------------------------------------------- delivery

    def sweep(self, *, limit: int = 500) -> int:
        now = self._clock.now()
        republish_after_s = self._republish_after_s
        return self._db.write(
            lambda tx: delivery.sweep(tx, now, republish_after_s=republish_after_s, limit=limit)
        )

    def take_outbox(self, limit: int) -> Sequence[OutboxMessage]:
        now = self._clock.now()
        return self._db.write(lambda tx: delivery.take_outbox(tx, now, limit=limit))

    def mark_sent(self, message_ids: Sequence[int]) -> None:
        now = self._clock.now()
        self._db.write(lambda tx: delivery.mark_sent(tx, message_ids, now))

    # ------------------------------------------------------------------------------- jobs

    def retry(self, principal: Principal, job_id: str) -> IngestJob:
        now = self._clock.now()
        return self._db.write(lambda tx: rerun.retry(tx, principal, job_id, now))

    def cancel(self, principal: Principal, job_id: str) -> IngestJob:
        now = self._clock.now()
        return self._db.write(lambda tx: rerun.cancel(tx, principal, job_id, now))
