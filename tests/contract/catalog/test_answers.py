"""Stored answers, and what a delete leaves of them."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.domain.documents import Accepted
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import new_answer_id
from tests.contract.catalog.driver import Driver, sha256_of

QUOTES = ("Pumps are tested yearly.", "Filters \U0001f600 wöchentlich.")


def answer_of(*accepted: Accepted, content: str = "one") -> dict[str, Any]:
    """An extractive answer that quotes one line of each document, two of the second."""
    text, citations, sources = "", [], []
    for place, document in enumerate(accepted):
        quote = QUOTES[place % 2]
        start = len(text)
        text += quote
        marker = len(text) + 1
        text += f" [{place + 1}]\n"
        citations.append(
            {
                "id": f"c{place + 1}", "n": place + 1, "start": start, "end": start + len(quote),
                "marker": {"start": marker, "end": marker + 3}, "verdict": "supported",
                "support_score": 0.1 + 0.2,
                "sources": [
                    {"source_id": f"s{place}", "quote": quote,
                     "locations": [{"page": 7, "start": 1, "end": 9, "rects": [[0.1, 0, 1, 1]]}]}
                ],
            }
        )  # fmt: skip
        sources.append(
            {"id": f"s{place}", "document_id": document.document_id, "title": "T", "pages": [7],
             "version": f"sha256:{sha256_of(content)}", "page_size": {"7": [595, 842]}}
        )  # fmt: skip
    return {
        "id": new_answer_id(), "object": "pincite.answer", "question": "How often\0?",
        "answer_status": "answered", "mode": "extractive", "text": text, "citations": citations,
        "sources": sources, "missing": [], "schema_version": 1, "model": None,
        "usage": {"prompt_tokens": 12, "completion_tokens": 0},
    }  # fmt: skip


def events_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"seq": 1, "event": "answer.created", "data": {"id": answer["id"]}},
        {"seq": 2, "event": "text.delta", "data": {"text": answer["text"]}},
        *(
            {"seq": 3 + place, "event": "citation.added", "data": citation}
            for place, citation in enumerate(answer["citations"])
        ),
        {"seq": 9, "event": "answer.completed", "data": answer},
    ]


def store(catalog: SqlCatalog, principal: Principal, answer: dict[str, Any]) -> None:
    ids = [source["document_id"] for source in answer["sources"]]
    catalog.answers.store(principal, answer, events_of(answer), ids)


def everything_stored(catalog: SqlCatalog) -> str:
    """All words of all answers and events, as the database holds them."""

    def work(tx: Any) -> str:
        rows = [tx.exec_driver_sql(f"SELECT * FROM {table}").all()
                for table in ("answers", "answer_events", "answer_documents")]  # fmt: skip
        return json.dumps(str(rows))

    return catalog._db.read(work)


def test_an_answer_comes_back_as_it_was(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    answer = answer_of(driver.ingest("1.pdf"), driver.ingest("2.pdf"))
    store(catalog, principal, answer)
    loaded = catalog.answers.load(principal, answer["id"])
    assert loaded == answer
    assert json.dumps(loaded) == json.dumps(answer)  # order and digits too
    assert catalog.answers.events(principal, answer["id"], 0) == events_of(answer)
    assert [event["seq"] for event in catalog.answers.events(principal, answer["id"], 3)] == [4, 9]
    assert catalog.answers.events(principal, answer["id"], 9) == []
    with pytest.raises(Conflict):
        store(catalog, principal, answer)


def test_events_without_numbers_are_numbered_from_one(
    catalog: SqlCatalog, principal: Principal
) -> None:
    answer = answer_of()
    catalog.answers.store(principal, answer, [{"event": "a"}, {"event": "b"}], [])
    assert catalog.answers.events(principal, answer["id"], 1) == [{"event": "b"}]


def test_an_answer_without_an_id_is_refused(catalog: SqlCatalog, principal: Principal) -> None:
    with pytest.raises(InvalidInput):
        catalog.answers.store(principal, {"text": ""}, [], [])


def test_answers_are_for_who_asked_and_for_admins(
    driver: Driver, catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    alice = Principal(principal.tenant_id, "alice", frozenset({Scope.SEARCH}))
    bob = Principal(principal.tenant_id, "bob", frozenset({Scope.SEARCH, Scope.OPS}))
    answer = answer_of(driver.ingest())
    store(catalog, alice, answer)
    assert catalog.answers.load(alice, answer["id"]) == answer
    assert catalog.answers.load(principal, answer["id"]) == answer
    for somebody in (bob, stranger):
        with pytest.raises(NotFound):
            catalog.answers.load(somebody, answer["id"])
        with pytest.raises(NotFound):
            catalog.answers.events(somebody, answer["id"], 0)


def test_a_delete_takes_the_quotes_and_keeps_every_offset(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    kept, gone = driver.ingest("1.pdf"), driver.ingest("2.pdf")
    answer = answer_of(kept, gone)
    other = answer_of(kept)
    store(catalog, principal, answer)
    store(catalog, principal, other)
    catalog.intake.delete(principal, gone.document_id, tombstone=False)

    loaded = catalog.answers.load(principal, answer["id"])
    first, second = loaded["citations"]
    assert first == answer["citations"][0]
    assert second["sources"] == [
        {"source_id": "s1", "quote": None, "deleted": True, "locations": []}
    ]
    assert {**second, "sources": None} == {**answer["citations"][1], "sources": None}
    assert len(loaded["text"]) == len(answer["text"])
    assert loaded["text"][first["start"] : first["end"]] == QUOTES[0]
    assert set(loaded["text"][second["start"] : second["end"]]) == {"█"}
    marker = second["marker"]
    assert loaded["text"][marker["start"] : marker["end"]] == "[2]"

    (completed,) = catalog.answers.events(principal, answer["id"], 0)
    assert (completed["seq"], completed["event"]) == (9, "answer.completed")
    assert completed["data"] == loaded
    assert "chentlich" not in everything_stored(catalog)
    assert catalog.answers.load(principal, other["id"]) == other
    assert catalog.answers.events(principal, other["id"], 0) == events_of(other)

    catalog.intake.delete(principal, kept.document_id, tombstone=False)
    loaded = catalog.answers.load(principal, answer["id"])
    assert [source["quote"] for c in loaded["citations"] for source in c["sources"]] == [None, None]
    assert "Pumps" not in everything_stored(catalog)


def test_quotes_of_a_document_that_went_during_the_question_are_not_stored(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    kept, gone = driver.ingest("1.pdf"), driver.ingest("2.pdf")
    answer = answer_of(kept, gone)
    catalog.intake.delete(principal, gone.document_id, tombstone=False)
    store(catalog, principal, answer)
    assert "chentlich" not in everything_stored(catalog)
    loaded = catalog.answers.load(principal, answer["id"])
    assert loaded["citations"][0] == answer["citations"][0]
    assert loaded["citations"][1]["sources"][0]["deleted"] is True


def test_quotes_of_a_document_that_came_back_with_other_bytes_are_not_stored(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    old = driver.ingest(content="one")
    answer = answer_of(old, content="one")
    catalog.intake.delete(principal, old.document_id, tombstone=False)
    driver.ingest(content="two")
    store(catalog, principal, answer)
    assert "Pumps" not in everything_stored(catalog)


def test_quotes_of_a_replaced_version_are_kept(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    answer = answer_of(driver.ingest(content="one"), content="one")
    driver.ingest(content="two")
    store(catalog, principal, answer)
    assert catalog.answers.load(principal, answer["id"]) == answer


def test_another_tenant_s_document_cannot_be_named(
    driver: Driver, catalog: SqlCatalog, stranger: Principal
) -> None:
    """The answer is stored; a delete by the document's owner does not reach into it."""
    accepted = driver.ingest()
    answer = answer_of(accepted)
    store(catalog, stranger, answer)
    catalog.intake.delete(driver.principal, accepted.document_id, tombstone=False)
    assert catalog.answers.load(stranger, answer["id"]) == answer


def test_racing_stores_and_a_delete_leave_no_quote(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    accepted = driver.ingest()
    answers = [answer_of(accepted) for _ in range(16)]

    def act(number: int) -> None:
        if number == 8:
            catalog.intake.delete(principal, accepted.document_id, tombstone=False)
        store(catalog, principal, answers[number])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(act, range(16)))
    assert "Pumps" not in everything_stored(catalog)
    for answer in answers:
        (event,) = catalog.answers.events(principal, answer["id"], 0)
        assert event["data"] == catalog.answers.load(principal, answer["id"])


def test_usage_is_kept_beside_the_answer(
    driver: Driver, catalog: SqlCatalog, principal: Principal
) -> None:
    answer = answer_of(driver.ingest())
    store(catalog, principal, answer)
    (row,) = catalog._db.read(lambda tx: tx.exec_driver_sql("SELECT * FROM usage").mappings().all())
    assert (row["answer_id"], row["prompt_tokens"]) == (answer["id"], 12)
