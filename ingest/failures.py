"""What becomes of a part when its stage raised: one of the three places that translate errors.

| what was raised | what happens |
|---|---|
| DocumentError | the part fails for good; the code is the document's status |
| Unavailable, Overloaded, a server's TimedOut, disk full | handed back, due again after a backoff |
| Conflict (content being purged, an index of another embedder) | handed back, after a backoff |
| ObjectChanged | handed back; a hint has the bucket looked at, which supersedes this version |
| ParserFailure, InternalError, MemoryError, anything unexpected | a failed attempt |
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import (
    Conflict,
    DocumentError,
    ManifestMismatch,
    ObjectChanged,
    Overloaded,
    ParserFailure,
    PinciteError,
    TimedOut,
    Unavailable,
)

if TYPE_CHECKING:
    from ingest.backoff import Backoff

_MISMATCH_DELAY_S = 60.0
_OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`retry_after_s` is None for a failed attempt, which the catalog counts."""

    code: str
    message: str
    hint: str | None = None
    is_final: bool = False
    retry_after_s: float | None = None


def judge(error: Exception, backoff: Backoff) -> Verdict:
    """The table above. Messages hold no document text: those of unexpected errors are left out."""
    if isinstance(error, PinciteError):
        return _judge_ours(error, backoff)
    if isinstance(error, MemoryError):
        return Verdict("out_of_memory", "the worker ran out of memory on this part")
    if isinstance(error, OSError) and error.errno in _OUT_OF_ROOM:
        code = "no_space"
        return Verdict(
            code,
            "the worker has no room left for temporary files",
            hint="free disk space where the data directory lies",
            retry_after_s=backoff.delay_s(code),
        )
    return Verdict("internal_error", f"unexpected {type(error).__name__}")


def _judge_ours(error: PinciteError, backoff: Backoff) -> Verdict:
    told = (error.code, error.message, error.hint)
    if isinstance(error, DocumentError):
        return Verdict(*told, is_final=True)
    if isinstance(error, ParserFailure):
        return Verdict(*told)
    if isinstance(error, ManifestMismatch):
        return Verdict(*told, retry_after_s=_MISMATCH_DELAY_S)
    if isinstance(error, Overloaded):
        delay_s = backoff.delay_s(error.code, at_least_s=error.retry_after_s)
        return Verdict(*told, retry_after_s=delay_s)
    if isinstance(error, Unavailable | TimedOut | Conflict | ObjectChanged):
        return Verdict(*told, retry_after_s=backoff.delay_s(error.code))
    return Verdict(*told)
