"""Errors of the index server and the one place where they become HTTP status codes.

InvalidInput
|-- BadRequest            400   the body or a parameter can never work as given
|-- UnsupportedField      400   Qdrant knows it, this server does not honour it
`-- UnsupportedEndpoint   501   Qdrant has it, this server does not
RequestTooLarge           413
UnknownCollection, UnknownPoint, UnknownEndpoint (NotFound)   404
CollectionExists (Conflict)                                   409
IndexOwned (AlreadyRunning)                                   refused before the server starts
BrokenRegistry (InternalError)                                refused before the server starts
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from core.errors import (
    AlreadyRunning,
    Conflict,
    ErrorKind,
    InternalError,
    InvalidInput,
    NotFound,
    PinciteError,
)


class BadRequest(InvalidInput):
    code = "index_bad_request"


class UnsupportedField(InvalidInput):
    code = "index_unsupported_field"


class UnsupportedEndpoint(InvalidInput):
    code = "index_unsupported_endpoint"


class RequestTooLarge(PinciteError):
    code = "index_request_too_large"
    kind = ErrorKind.TOO_LARGE


class UnknownCollection(NotFound):
    code = "index_unknown_collection"

    def __init__(self, name: str) -> None:
        super().__init__(f"Not found: Collection `{name}` doesn't exist!")


class UnknownPoint(NotFound):
    code = "index_unknown_point"

    def __init__(self, point_id: object) -> None:
        super().__init__(f"Not found: No point with id {point_id} found")


class UnknownEndpoint(NotFound):
    code = "index_unknown_endpoint"


class CollectionExists(Conflict):
    code = "index_collection_exists"


class IndexOwned(AlreadyRunning):
    code = "index_owned"


class BrokenRegistry(InternalError):
    code = "index_broken_registry"


HTTP_STATUS: Final[dict[ErrorKind, int]] = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.OVERLOADED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.TIMEOUT: 408,
    ErrorKind.INTERNAL: 500,
}


@contextmanager
def reading_values() -> Iterator[None]:
    """Turns what the edge library's constructors raise for bad values into BadRequest."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        first_line = str(error).split("\n", 1)[0]
        raise BadRequest(f"Wrong input: {first_line}") from error


def http_status(error: PinciteError) -> int:
    """The status code that a Qdrant server would answer with for this error."""
    if isinstance(error, UnsupportedEndpoint):
        return 501
    return HTTP_STATUS[error.kind]
