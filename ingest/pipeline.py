"""The walk of one part: its stage, then either the catalog's next step or a judged failure.

A part is a lease in the catalog; the broker's message only said that it waits. Nothing here knows
of Celery: a worker calls `run_part`, a test does the same."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from structlog.contextvars import bound_contextvars

from core.domain.documents import PartResult, Stage
from core.errors import LeaseLost, ObjectChanged, PinciteError
from core.logging import get_logger
from ingest import indexing, stages
from ingest.failures import Verdict, judge
from ingest.part_run import PartRun, PipelineDeps, StopRequested

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.domain.documents import LeasedPart

_STAGES: dict[Stage, Callable[[PartRun], PartResult | None]] = {
    Stage.PARSE: stages.parse,
    Stage.CHUNK: stages.chunk,
    Stage.EMBED: indexing.embed,
    Stage.INDEX: indexing.index,
    Stage.ACTIVATE: indexing.activate,
}
_WRITES_POINTS = frozenset({Stage.INDEX, Stage.ACTIVATE})

_log = get_logger(__name__)


class Outcome(StrEnum):
    """What became of the lease."""

    DONE = "done"
    HANDED_BACK = "handed_back"  # due again later: a server was down, or the worker stops
    FAILED = "failed"
    LEASE_LOST = "lease_lost"  # somebody else has it, or the document is gone


def run_part(part: LeasedPart, deps: PipelineDeps) -> Outcome:
    """Work on a leased part and record what became of it.

    Raises CatalogUnavailable when even that could not be recorded: the lease then runs out and the
    sweeper announces the part again.
    """
    run = PartRun(part, deps)
    with bound_contextvars(
        part_id=part.part_id,
        stage=str(part.stage),
        attempt=part.attempt,
        document_id=part.document_id,
        job_id=part.job_id,
        tenant_id=part.tenant_id,
    ):
        outcome = _run(run)
        _log.info("part.ended", outcome=str(outcome), duration_ms=round(run.seconds * 1000))
    return outcome


def _run(run: PartRun) -> Outcome:
    try:
        result = _STAGES[run.part.stage](run)
        if result is not None:
            run.deps.catalog.parts.complete(run.part, result)
        run.deps.backoff.reset()
        return Outcome.DONE
    except LeaseLost:
        return _lose(run)
    except StopRequested:
        return _record(run, Verdict("stopped", "the worker stopped", retry_after_s=0.0))
    except Exception as error:  # noqa: BLE001 - the edge: every failure becomes a state of the part
        _report(run, error)
        return _record(run, judge(error, run.deps.backoff))


def _record(run: PartRun, verdict: Verdict) -> Outcome:
    parts = run.deps.catalog.parts
    try:
        if verdict.retry_after_s is None:
            parts.fail(
                run.part,
                code=verdict.code,
                message=verdict.message,
                hint=verdict.hint,
                is_final=verdict.is_final,
            )
            return Outcome.FAILED
        retry_at = run.deps.clock.now() + timedelta(seconds=verdict.retry_after_s)
        parts.release(run.part, retry_at=retry_at, code=verdict.code, message=verdict.message)
        return Outcome.HANDED_BACK
    except LeaseLost:
        return _lose(run)


def _lose(run: PartRun) -> Outcome:
    if run.part.stage in _WRITES_POINTS:
        try:
            indexing.take_back(run)
        except PinciteError as error:
            # The sweeper's scan for orphans finds what is left.
            _log.warning("points.not_taken_back", code=error.code)
    return Outcome.LEASE_LOST


def _report(run: PartRun, error: Exception) -> None:
    if isinstance(error, ObjectChanged):
        part = run.part
        run.deps.catalog.intake.add_hint(part.tenant_id, part.bucket, part.key)
    if isinstance(error, PinciteError):
        _log.warning("part.failed", code=error.code, error=error.message, **error.context)
    else:
        _log.exception("part.crashed", code="internal_error")
