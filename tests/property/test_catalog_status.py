"""The one function that says what state a document is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.adapters.catalog.status import (
    FAILURES,
    StatusFacts,
    derive_status,
    facts_of,
    failure_of,
    keys_of,
    status_of,
)
from core.domain.documents import DocumentStatus
from core.errors import DocumentError

ACTIVE = StatusFacts(is_active=True, has_chunks=True, has_started=True)

facts = st.builds(
    StatusFacts,
    is_deleted=st.booleans(),
    is_active=st.booleans(),
    has_failed_pages=st.booleans(),
    has_chunks=st.booleans(),
    has_started=st.booleans(),
    failure=st.none() | st.sampled_from(FAILURES),
)


@pytest.mark.parametrize(
    ("given_facts", "status"),
    [
        (StatusFacts(), "queued"),
        (StatusFacts(has_started=True), "processing"),
        (StatusFacts(has_started=True, has_chunks=True), "processing"),
        (StatusFacts(has_started=True, has_failed_pages=True), "processing"),
        (ACTIVE, "ready"),
        (StatusFacts(is_active=True, has_chunks=True, has_failed_pages=True), "partial"),
        (StatusFacts(is_active=True, has_chunks=False, has_started=True), "processing"),
        (StatusFacts(has_started=True, failure="needs_password"), "needs_password"),
        (StatusFacts(has_started=True, failure="needs_ocr"), "needs_ocr"),
        (StatusFacts(has_started=True, failure="corrupt"), "corrupt"),
        (StatusFacts(has_started=True, failure="unsupported"), "unsupported"),
        (StatusFacts(has_started=True, failure="too_large"), "too_large"),
        (StatusFacts(has_started=True, failure="quarantined"), "quarantined"),
        (StatusFacts(failure="cancelled"), "quarantined"),
        (StatusFacts(failure="superseded"), "quarantined"),
        (StatusFacts(is_deleted=True), "deleting"),
        (StatusFacts(is_deleted=True, is_active=True, has_chunks=True), "deleting"),
        (StatusFacts(is_deleted=True, failure="corrupt"), "deleting"),
    ],
    ids=str,
)
def test_the_table_of_states(given_facts: StatusFacts, status: str) -> None:
    assert derive_status(given_facts) == status


@given(facts)
def test_searchable_states_have_chunks_and_an_active_generation(some: StatusFacts) -> None:
    status = derive_status(some)
    if status in {DocumentStatus.READY, DocumentStatus.PARTIAL}:
        assert some.is_active
        assert some.has_chunks
        assert some.failure is None
        assert not some.is_deleted
    assert (status is DocumentStatus.DELETING) == some.is_deleted


@given(facts)
def test_a_failure_is_final_and_says_so(some: StatusFacts) -> None:
    status = derive_status(some)
    if some.failure is not None and not some.is_deleted:
        assert status.is_final
        assert status not in {DocumentStatus.READY, DocumentStatus.PARTIAL}


@given(facts)
def test_what_sql_selects_means_the_same(some: StatusFacts) -> None:
    assert facts_of(some.key) == some
    assert status_of(some.key) is derive_status(some)
    assert [status for status in DocumentStatus if some.key in keys_of(status)] == [
        derive_status(some)
    ]


def test_every_document_error_is_a_state_of_its_own() -> None:
    kinds = DocumentError.__subclasses__()
    assert len(kinds) == 5
    for kind in kinds:
        assert failure_of(kind.code) == kind.code
        assert derive_status(StatusFacts(failure=failure_of(kind.code))) == kind.code


@given(st.text())
def test_any_other_code_is_quarantine(code: str) -> None:
    assert failure_of(code) in FAILURES
