"""What the end of an attempt does to a part, its stage and its generation."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from core.adapters.catalog.database import clean
from core.adapters.catalog.tables import generations, jobs, outbox, parts
from core.adapters.catalog.work import MAX_DELAY_S, add_parts, announce, finish_job, touch
from core.domain.documents import PartState
from core.errors import InternalError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import AnyRow
    from core.domain.documents import LeasedPart, NewPart, PartResult


def same_stage(part: LeasedPart, result: PartResult) -> tuple[NewPart, ...]:
    """The parts that join the open stage. Raises InternalError for parts of another."""
    if any(new.stage is not part.stage for new in result.same_stage):
        raise InternalError("a part may add to its own stage only", part_id=part.part_id)
    return result.same_stage


def open_stage(
    tx: Connection, part: LeasedPart, result: PartResult, *, queue: str, now: datetime
) -> None:
    """Add the next stage's parts, now that the last part of this one is done."""
    stages = {new.stage for new in result.next_stage}
    if len(stages) != 1 or part.stage in stages:
        raise InternalError(
            "the part that closes a stage must bring the next one", part_id=part.part_id
        )
    added = add_parts(tx, part.generation_id, result.next_stage, queue=queue, now=now)
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == part.generation_id)
        .values(num_open=added, stage=stages.pop().value)
    )


def record_facts(tx: Connection, part: LeasedPart, result: PartResult) -> None:
    """Add what a part learned of the document to its generation."""
    row = tx.execute(
        select(generations).where(generations.c.generation_id == part.generation_id)
    ).one()
    failed_pages = sorted({*row.failed_pages, *result.failed_pages})
    given = {
        "page_count": result.page_count,
        "title": None if result.title is None else clean(result.title, 500).strip() or None,
        "language": None if result.language is None else clean(result.language, 40),
        "num_chunks": result.num_chunks,
        "parser_fingerprint": result.parser_fingerprint,
    }
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == part.generation_id)
        .values(
            failed_pages=failed_pages,
            num_failed_pages=len(failed_pages),
            warnings=list(dict.fromkeys([*row.warnings, *map(clean, result.warnings)])),
            pages_done=row.pages_done + result.num_pages_done,
            num_terms=row.num_terms + (result.num_terms or 0),
            **{name: value for name, value in given.items() if value is not None},
        )
    )


def record_error(
    tx: Connection, part: LeasedPart, code: str, message: str, hint: str | None
) -> None:
    """Remember the last error, also of a part that will be tried again."""
    tx.execute(
        update(parts)
        .where(parts.c.part_id == part.part_id)
        .values(
            error_code=clean(code, 100),
            error_message=clean(message),
            error_hint=None if hint is None else clean(hint),
        )
    )


def put_back(
    tx: Connection, row: AnyRow, *, retry_at: datetime, now: datetime, attempts: int
) -> None:
    """Make a held part wait for its next attempt, which the sweeper announces if it is not due."""
    latest = now + timedelta(seconds=MAX_DELAY_S)
    tx.execute(
        update(parts)
        .where(parts.c.part_id == row.part_id)
        .values(
            state=PartState.WAITING.value,
            attempts=max(0, attempts),
            owner=None,
            expires_at=None,
            not_before=min(retry_at, latest),
        )
    )
    if row.failed_at is None:
        announce(tx, row.generation_id, now)


def fail_part(tx: Connection, row: AnyRow, failure: str, now: datetime) -> None:
    """Fail a part for good, and with it the generation: its other parts are not leased any more."""
    tx.execute(
        update(parts)
        .where(parts.c.part_id == row.part_id)
        .values(
            state=PartState.FAILED.value,
            failure=failure,
            owner=None,
            expires_at=None,
            finished_at=now,
        )
    )
    tx.execute(
        update(generations)
        .where(generations.c.generation_id == row.generation_id)
        .values(failed_at=now)
    )
    tx.execute(delete(outbox).where(outbox.c.generation_id == row.generation_id))
    finish_job(tx, jobs.c.generation_id == row.generation_id, now)
    touch(tx, row.document_id, now)
