"""The one place where a document's status comes from.

`derive_status` is a pure function of a few facts; `facts_key` is the SQL that gathers them, as one
short text per row, so that lists, filters and counts all go through the same function.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, exists, func, literal, select

from core.adapters.catalog.tables import documents, generations, parts
from core.domain.documents import DocumentStatus, PartState

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

QUARANTINED = "quarantined"
CANCELLED = "cancelled"
SUPERSEDED = "superseded"
DOCUMENT_FAILURES = frozenset(
    {
        DocumentStatus.NEEDS_PASSWORD,
        DocumentStatus.CORRUPT,
        DocumentStatus.UNSUPPORTED,
        DocumentStatus.NEEDS_OCR,
        DocumentStatus.TOO_LARGE,
    }
)
FAILURES = (*sorted(DOCUMENT_FAILURES), QUARANTINED, CANCELLED, SUPERSEDED)


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """What decides a version's status.

    `is_deleted`: its document is. `is_active`: its generation (or, for a version closed as a no-op,
    the one that already had its bytes) was flipped to. `has_started`: a part is leased or done.
    `failure`: why a part failed for good, `cancelled`, or `superseded` for a version that was
    replaced before it was finished.
    """

    is_deleted: bool = False
    is_active: bool = False
    has_failed_pages: bool = False
    has_chunks: bool = False
    has_started: bool = False
    failure: str | None = None

    @property
    def key(self) -> str:
        """As `facts_key` selects it: five flags, then the failure."""
        flags = (
            self.is_deleted,
            self.is_active,
            self.has_failed_pages,
            self.has_chunks,
            self.has_started,
        )
        return "".join("1" if flag else "0" for flag in flags) + (self.failure or "")


def derive_status(facts: StatusFacts) -> DocumentStatus:
    """The status of a version (contracts.md). Never `ready` or `partial` without chunks."""
    if facts.is_deleted:
        return DocumentStatus.DELETING
    if facts.failure is not None:
        is_status = facts.failure in DOCUMENT_FAILURES
        return DocumentStatus(facts.failure) if is_status else DocumentStatus.QUARANTINED
    if facts.is_active and facts.has_chunks:
        return DocumentStatus.PARTIAL if facts.has_failed_pages else DocumentStatus.READY
    return DocumentStatus.PROCESSING if facts.has_started else DocumentStatus.QUEUED


def failure_of(code: str) -> str:
    """How a final failure with that error code is recorded: a DocumentError's own code is a status,
    anything else is quarantine."""
    return code if code in DOCUMENT_FAILURES else QUARANTINED


def status_of(key: str) -> DocumentStatus:
    """The status for a selected `facts_key`."""
    return derive_status(facts_of(key))


def facts_of(key: str) -> StatusFacts:
    """The inverse of `StatusFacts.key`."""
    deleted, active, failed_pages, chunks, started = (flag == "1" for flag in key[:5])
    return StatusFacts(deleted, active, failed_pages, chunks, started, key[5:] or None)


@cache
def keys_of(status: DocumentStatus) -> tuple[str, ...]:
    """Every facts key whose status is this one (for WHERE facts_key IN ...)."""
    return tuple(key for key in _all_keys() if status_of(key) is status)


def _all_keys() -> list[str]:
    flags = ["".join(bits) for bits in itertools.product("01", repeat=5)]
    return [f + failure for f in flags for failure in ("", *FAILURES)]


@cache
def facts_key() -> ColumnElement[str]:
    """The facts of each row of documents and generations (those that decide how a version shows).

    Parts are looked at only for generations that were never activated.
    """
    was_activated = generations.c.activated_at.is_not(None)
    part_failure = (
        select(func.min(parts.c.failure))
        .where(
            parts.c.generation_id == generations.c.generation_id,
            parts.c.state == PartState.FAILED.value,
        )
        .scalar_subquery()
    )
    was_replaced = and_(
        generations.c.superseded_at.is_not(None), documents.c.newest_seq > generations.c.version_seq
    )
    failure = case(
        (was_activated, literal("")),
        else_=func.coalesce(part_failure, case((was_replaced, SUPERSEDED), else_="")),
    )
    has_started = exists().where(
        parts.c.generation_id == generations.c.generation_id,
        parts.c.state.in_([PartState.LEASED.value, PartState.DONE.value]),
    )
    return (
        _flag(documents.c.deleted_at.is_not(None))
        + _flag(was_activated)
        + _flag(generations.c.num_failed_pages > 0)
        + _flag(func.coalesce(generations.c.num_chunks, 0) > 0)
        + case((was_activated, "1"), (has_started, "1"), else_="0")
        + failure
    )


def _flag(condition: ColumnElement[bool]) -> ColumnElement[str]:
    return case((condition, "1"), else_="0")
