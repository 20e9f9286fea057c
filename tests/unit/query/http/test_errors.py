"""Every kind of error has a status, and every code is known."""

import pytest

import core.errors
from core.errors import ErrorKind, Gone, NotFound, PinciteError, Unavailable
from query.http.errors import is_retryable, status_of, status_of_code

EXPECTED = {
    ErrorKind.INVALID: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.OVERLOADED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.INTERNAL: 500,
}
KINDS = [
    kind
    for kind in vars(core.errors).values()
    if isinstance(kind, type) and issubclass(kind, PinciteError)
]


def test_the_table_is_whole() -> None:
    assert set(EXPECTED) == set(ErrorKind)


@pytest.mark.parametrize("kind", KINDS)
def test_status_by_kind_and_by_code(kind: type[PinciteError]) -> None:
    expected = 410 if kind is Gone else EXPECTED[kind.kind]
    assert status_of(kind("x")) == expected
    assert status_of_code(kind.code) == expected


def test_an_unknown_code_is_our_fault() -> None:
    assert status_of_code("never heard of") == 500


def test_what_may_be_tried_again() -> None:
    assert is_retryable(Unavailable("x"))
    assert not is_retryable(NotFound("x"))
