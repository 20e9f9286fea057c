"""The error tree of Pincite (everything but the engine, which has its own root).

    PinciteError
    |-- InvalidInput            INVALID          a request or setting that can never work as given
    |   `-- SettingsError
    |-- DocumentError           INVALID          this file can never be ingested as it is: no retry
    |   |-- NeedsPassword       -> status needs_password
    |   |-- CorruptDocument     -> status corrupt
    |   |-- UnsupportedDocument -> status unsupported
    |   |-- NeedsOcr            -> status needs_ocr
    |   `-- DocumentTooLarge    -> status too_large (TOO_LARGE)
    |-- ParserFailure           INTERNAL         the parser child died on a document: three strikes
    |   |-- ParserCrashed
    |   |-- ParserTimedOut      (TIMEOUT)
    |   `-- ParserOutOfMemory
    |-- NotAuthenticated        UNAUTHENTICATED
    |-- NotPermitted            FORBIDDEN
    |-- NotFound                NOT_FOUND
    |   `-- Gone                                 it existed; its bytes were deleted or expired
    |-- Conflict                CONFLICT
    |   |-- LeaseLost                            somebody else owns the part now
    |   |-- ObjectChanged                        the bytes are not the ones that were announced
    |   |-- ManifestMismatch                     the index has another embedder or analyser
    |   `-- AlreadyRunning
    |-- Overloaded              OVERLOADED       carries retry_after_s
    |-- Unavailable             UNAVAILABLE      a server we depend on does not answer: retried
    |   |-- CatalogUnavailable | ObjectStoreUnavailable | IndexUnavailable
    |   `-- ModelsUnavailable | BrokerUnavailable | GeneratorUnavailable
    |-- TimedOut                TIMEOUT
    `-- InternalError           INTERNAL         a bug or broken invariant of ours

`kind` is translated in exactly three places: HTTP (status code), worker (retry or quarantine) and
command line (exit code).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class ErrorKind(StrEnum):
    """What the edges translate: a closed list."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    INTERNAL = "internal"


class PinciteError(Exception):
    """Root of all errors we raise on purpose.

    Args:
        message: one sentence for a person; no secrets, no document text.
        hint: what to do about it, or None.
        context: facts for the log (ids, sizes), never document text.
    """

    code: ClassVar[str] = "internal_error"
    kind: ClassVar[ErrorKind] = ErrorKind.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context


class InvalidInput(PinciteError):
    code = "invalid_input"
    kind = ErrorKind.INVALID


class SettingsError(InvalidInput):
    code = "invalid_settings"


class DocumentError(PinciteError):
    """This file can never be ingested as it is; its `code` is the document's status."""

    code = "corrupt"
    kind = ErrorKind.INVALID


class NeedsPassword(DocumentError):
    code = "needs_password"


class CorruptDocument(DocumentError):
    code = "corrupt"


class UnsupportedDocument(DocumentError):
    code = "unsupported"


class NeedsOcr(DocumentError):
    code = "needs_ocr"


class DocumentTooLarge(DocumentError):
    code = "too_large"
    kind = ErrorKind.TOO_LARGE


class ParserFailure(PinciteError):
    code = "parser_failed"
    kind = ErrorKind.INTERNAL


class ParserCrashed(ParserFailure):
    code = "parser_crashed"


class ParserTimedOut(ParserFailure):
    code = "parser_timed_out"
    kind = ErrorKind.TIMEOUT


class ParserOutOfMemory(ParserFailure):
    code = "parser_out_of_memory"


class NotAuthenticated(PinciteError):
    code = "not_authenticated"
    kind = ErrorKind.UNAUTHENTICATED


class NotPermitted(PinciteError):
    code = "not_permitted"
    kind = ErrorKind.FORBIDDEN


class NotFound(PinciteError):
    code = "not_found"
    kind = ErrorKind.NOT_FOUND


class Gone(NotFound):
    code = "gone"


class Conflict(PinciteError):
    code = "conflict"
    kind = ErrorKind.CONFLICT


class LeaseLost(Conflict):
    code = "lease_lost"


class ObjectChanged(Conflict):
    code = "object_changed"


class ManifestMismatch(Conflict):
    code = "manifest_mismatch"


class AlreadyRunning(Conflict):
    code = "already_running"


class Overloaded(PinciteError):
    code = "overloaded"
    kind = ErrorKind.OVERLOADED

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float = 1.0,
        hint: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, **context)
        self.retry_after_s = retry_after_s


class Unavailable(PinciteError):
    code = "unavailable"
    kind = ErrorKind.UNAVAILABLE


class CatalogUnavailable(Unavailable):
    code = "catalog_unavailable"


class ObjectStoreUnavailable(Unavailable):
    code = "object_store_unavailable"


class IndexUnavailable(Unavailable):
    code = "index_unavailable"


class ModelsUnavailable(Unavailable):
    code = "models_unavailable"


class GeneratorUnavailable(Unavailable):
    code = "generator_unavailable"


class BrokerUnavailable(Unavailable):
    code = "broker_unavailable"


class TimedOut(PinciteError):
    code = "timed_out"
    kind = ErrorKind.TIMEOUT


class InternalError(PinciteError):
    code = "internal_error"
    kind = ErrorKind.INTERNAL


def error_classes(root: type[PinciteError] = PinciteError) -> Iterator[type[PinciteError]]:
    """The class and all below it, those above first. A class without a code of its own has that of
    the one above."""
    yield root
    for below in root.__subclasses__():
        yield from error_classes(below)
