"""Conversations: private threads of answers."""

from typing import Any

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.domain.conversations import MAX_TITLE_CHARS
from core.errors import InvalidInput, NotFound
from tests.contract.catalog.driver import Driver
from tests.contract.catalog.test_answers import answer_of, everything_stored, store
from tests.fakes.clock import FakeClock


def said(
    catalog: SqlCatalog, who: Principal, conversation_id: str, question: str
) -> dict[str, Any]:
    answer = answer_of() | {"question": question, "conversation_id": conversation_id}
    store(catalog, who, answer)
    return answer


@pytest.fixture
def alice(principal: Principal) -> Principal:
    return Principal(principal.tenant_id, "alice", frozenset({Scope.SEARCH}))


def test_answers_of_a_conversation_come_back_in_order(
    catalog: SqlCatalog, clock: FakeClock, alice: Principal
) -> None:
    begun = catalog.conversations.create(alice)
    assert (begun.title, begun.num_answers) == ("", 0)
    answers = []
    for number in range(4):
        clock.advance(1.0)
        answers.append(said(catalog, alice, begun.conversation_id, f"question {number}?"))
    turns = catalog.conversations.turns(alice, begun.conversation_id, limit=3)
    assert turns == answers[1:]
    found = catalog.conversations.get(alice, begun.conversation_id)
    assert (found.title, found.num_answers) == ("question 0?", 4)


def test_a_given_title_stays_and_is_cut(catalog: SqlCatalog, alice: Principal) -> None:
    named = catalog.conversations.create(alice, "Pumps\0")
    said(catalog, alice, named.conversation_id, "How often?")
    assert catalog.conversations.get(alice, named.conversation_id).title == "Pumps"
    long = catalog.conversations.create(alice, "x" * 1_000)
    assert len(long.title) == MAX_TITLE_CHARS


def test_a_conversation_is_private_even_from_administrators(
    catalog: SqlCatalog, principal: Principal, stranger: Principal, alice: Principal
) -> None:
    begun = catalog.conversations.create(alice)
    said(catalog, alice, begun.conversation_id, "mine")
    for somebody in (principal, stranger):
        assert catalog.conversations.recent(somebody) == ([], None)
        with pytest.raises(NotFound):
            catalog.conversations.get(somebody, begun.conversation_id)
        with pytest.raises(NotFound):
            catalog.conversations.turns(somebody, begun.conversation_id, limit=5)
        with pytest.raises(NotFound):
            catalog.conversations.delete(somebody, begun.conversation_id)
    # An answer that names somebody else's conversation is stored, but not in it.
    said(catalog, principal, begun.conversation_id, "intruder")
    assert catalog.conversations.get(alice, begun.conversation_id).num_answers == 1


def test_listing_goes_page_by_page_newest_first(catalog: SqlCatalog, alice: Principal) -> None:
    made = [catalog.conversations.create(alice, f"t{n}").conversation_id for n in range(5)]
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page, cursor = catalog.conversations.recent(alice, cursor=cursor, limit=2)
        seen += [conversation.conversation_id for conversation in page]
    assert cursor is None
    assert seen == sorted(made, reverse=True)
    with pytest.raises(InvalidInput):
        catalog.conversations.recent(alice, limit=0)
    with pytest.raises(InvalidInput):
        catalog.conversations.recent(alice, cursor="bm9uZQ")


def test_deleting_takes_every_word_and_keeps_the_cost(
    driver: Driver, catalog: SqlCatalog, alice: Principal
) -> None:
    begun = catalog.conversations.create(alice)
    gone = answer_of(driver.ingest("1.pdf")) | {
        "question": "canary question?", "conversation_id": begun.conversation_id
    }  # fmt: skip
    store(catalog, alice, gone)
    kept = said(catalog, alice, catalog.conversations.create(alice).conversation_id, "other?")
    catalog.conversations.delete(alice, begun.conversation_id)
    with pytest.raises(NotFound):
        catalog.conversations.get(alice, begun.conversation_id)
    with pytest.raises(NotFound):
        catalog.answers.load(alice, gone["id"])
    with pytest.raises(NotFound):
        catalog.answers.events(alice, gone["id"], 0)
    assert "canary" not in everything_stored(catalog)
    assert catalog.answers.load(alice, kept["id"]) == kept
