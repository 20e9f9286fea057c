"""The walk of one question over a real catalog: events, order, storage, visibility, failures."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from core.domain.access import Principal, Scope
from core.errors import (
    CatalogUnavailable,
    InvalidInput,
    NotFound,
    NotPermitted,
)
from core.ports.catalog import AnswerCatalog
from query.answers.answering import AnswerDeps, Answering, answer
from query.answers.events import Event, EventType
from query.answers.projection import answer_from_json, answer_to_json
from query.services import Asked
from tests.api_world import World, lined_page
from tests.written_world import PAGES, PUMPS, asker_of, written_deps


@pytest.fixture
def deps(world: World) -> AnswerDeps:
    """Whatever has evidence is answered: the decision has tests of its own, with a real model."""
    return written_deps(world, None)


@pytest.fixture
def asker(world: World) -> Principal:
    return asker_of(world)


def ask(asker: Principal, deps: AnswerDeps, question: str = PUMPS) -> list[Event]:
    return list(answer(asker, Asked("", question), deps))


def completed(events: Sequence[Event]) -> dict[str, Any]:
    assert events[-1].type is EventType.ANSWER_COMPLETED
    found: dict[str, Any] = events[-1].payload["answer"]
    return found


def types(events: Sequence[Event]) -> list[str]:
    return [event.type.value for event in events]


def test_events_come_in_order_with_increasing_seq(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES[:1])
    events = ask(asker, deps)
    assert types(events)[:3] == ["answer.created", "retrieval.queries", "retrieval.sources"]
    quotes = types(events)[3:-1]
    assert quotes
    assert quotes == ["text.delta", "citation.added", "citation.verified"] * (len(quotes) // 3)
    assert types(events)[-1] == "answer.completed"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[1].payload == {"queries": [PUMPS]}
    assert [s["title"] for s in events[2].payload["sources"]] == ["handbook"]


def test_streamed_stored_and_reloaded_are_one_object(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    events = ask(asker, deps)
    sent = completed(events)
    assert world.catalog.answers.load(asker, sent["id"]) == sent
    assert world.catalog.answers.events(asker, sent["id"], 0) == [e.to_json() for e in events]
    assert answer_to_json(answer_from_json(sent)) == sent
    assert (
        "".join(e.payload["delta"] for e in events if e.type is EventType.TEXT_DELTA)
        == (sent["text"])
    )
    added = [e.payload["citation"] for e in events if e.type is EventType.CITATION_ADDED]
    assert added == sent["citations"]


def test_it_is_stored_before_the_last_event_is_given_out(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES[:1])
    events = answer(asker, Asked("ans_early", PUMPS), deps)
    for event in events:
        if event.type is EventType.ANSWER_COMPLETED:
            assert world.catalog.answers.load(asker, "ans_early")["text"]
        else:
            with pytest.raises(NotFound):
                world.catalog.answers.load(asker, "ans_early")


def test_quotes_are_on_the_page_they_name(world: World, deps: AnswerDeps, asker: Principal) -> None:
    accepted = world.ingest("plant/manual.pdf", PAGES)
    sent = completed(ask(asker, deps, "Who paints the valves?"))
    assert sent["answer_status"] == "answered"
    sources = {source["id"]: source for source in sent["sources"]}
    assert "painted red" in sent["text"]
    for citation in sent["citations"]:
        shown = sent["text"][citation["start"] : citation["end"]]
        marker = sent["text"][citation["marker"]["start"] : citation["marker"]["end"]]
        assert marker == f"[{citation['n']}]"
        (cited,) = citation["sources"]
        assert shown.split() == cited["quote"].split()
        (place,) = cited["locations"]
        text = PAGES[place["page"] - 1]
        assert text[place["start"] : place["end"]] == cited["quote"]
        assert place["rects"]
        source = sources[cited["source_id"]]
        assert source["document_id"] == accepted.document_id
        assert source["uri"] == "s3://documents/plant/manual.pdf"
        assert source["page_size"][str(place["page"])] == [600.0, 800.0]


def test_a_view_url_names_version_answer_citation_and_page(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    accepted = world.ingest(texts=PAGES[:1])
    settings = deps.settings
    public = settings.model_copy(
        update={"api": settings.api.model_copy(update={"public_url": "https://x.example/"})}
    )
    sent = completed(ask(asker, replace(deps, settings=public)))
    (source,) = sent["sources"]
    assert source["view_url"] == (
        f"https://x.example/view/{accepted.document_id}?v={source['version']}"
        f"&answer={sent['id']}&cite=c1&page=1"
    )
    (relative,) = completed(ask(asker, deps))["sources"]
    assert relative["view_url"].startswith(f"/view/{accepted.document_id}?v=sha256:")


def test_scores_only_with_the_scope(world: World, deps: AnswerDeps, asker: Principal) -> None:
    world.ingest(texts=PAGES[:1])
    explaining = replace(asker, scopes=frozenset({Scope.SEARCH, Scope.EXPLAIN}))
    for principal, is_shown in ((asker, False), (explaining, True)):
        events = ask(principal, deps)
        shown = events[2].payload["sources"] + completed(events)["sources"]
        assert shown
        assert all(("scores" in source) is is_shown for source in shown)


def test_no_documents_is_not_in_documents(deps: AnswerDeps, asker: Principal, world: World) -> None:
    events = ask(asker, deps)
    sent = completed(events)
    assert types(events) == [
        "answer.created",
        "retrieval.queries",
        "retrieval.sources",
        "text.delta",
        "answer.completed",
    ]
    assert (sent["answer_status"], sent["citations"], sent["sources"], sent["missing"]) == (
        "not_in_documents",
        [],
        [],
        [PUMPS],
    )
    assert sent["text"] == "The documents do not answer this question."
    assert world.catalog.answers.load(asker, sent["id"]) == sent


def test_evidence_that_does_not_answer_is_not_shown(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    refusing = replace(deps, is_answerable=lambda _reranked, _evidence: False)
    events = ask(asker, refusing)
    assert completed(events)["answer_status"] == "not_in_documents"
    assert EventType.CITATION_ADDED not in {event.type for event in events}
    assert events[2].payload["sources"]  # what was found is still worth a look


def test_a_question_in_german_is_answered_in_its_words(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=["Die Pumpen werden jährlich geprüft. Ein Protokoll wird geführt."])
    sent = completed(ask(asker, deps, "Wie oft werden die Pumpen geprüft?"))
    assert "jährlich geprüft" in sent["text"]
    nothing = replace(deps, is_answerable=lambda _reranked, _evidence: False)
    assert completed(ask(asker, nothing, "Wie oft werden die Pumpen geprüft?"))["text"] == (
        "Die Dokumente beantworten diese Frage nicht."
    )


def test_a_question_of_two_parts_is_answered_in_part(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    partly = replace(
        deps,
        is_answerable=lambda reranked, evidence: (
            bool(evidence) and "canteen" not in reranked.retrieved.question.text
        ),
    )
    events = ask(asker, partly, "How often are the pumps tested and who runs the canteen?")
    sent = completed(events)
    assert events[1].payload["queries"] == [
        "How often are the pumps tested",
        "who runs the canteen?",
    ]
    assert sent["answer_status"] == "partial"
    assert sent["missing"] == ["who runs the canteen?"]
    assert sent["text"].endswith("\n\nNot in the documents: who runs the canteen?")
    assert "tested yearly" in sent["text"]


def test_two_parts_with_the_same_evidence_quote_it_once(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES[:1])
    single = deps.settings.model_copy(
        update={"answer": deps.settings.answer.model_copy(update={"max_quotes": 1})}
    )
    question = "How often are the pumps tested and when are the pumps tested?"
    sent = completed(ask(asker, replace(deps, settings=single), question))
    assert sent["answer_status"] == "answered"
    assert len(sent["citations"]) == 1


def test_narrowing_and_collections_hold(world: World, deps: AnswerDeps, asker: Principal) -> None:
    world.ingest("hr/pumps.pdf", PAGES[:1])
    elsewhere = Asked("", PUMPS, collections=("plant",))
    assert completed(list(answer(asker, elsewhere, deps)))["answer_status"] == "not_in_documents"
    other = replace(asker, collections=frozenset({"plant"}))
    assert completed(ask(other, deps))["answer_status"] == "not_in_documents"
    assert completed(ask(asker, deps))["answer_status"] == "answered"


def test_a_deleted_document_is_never_quoted(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    accepted = world.ingest(texts=PAGES)
    world.catalog.intake.delete(world.owner(), accepted.document_id, tombstone=False)
    assert world.index.count(world.owner(), accepted.document_id, accepted.generation_id)
    events = ask(asker, deps)
    assert completed(events)["answer_status"] == "not_in_documents"
    assert events[2].payload["sources"] == []


def test_a_document_replaced_during_the_search_is_the_one_the_snapshot_saw(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    old = world.ingest(texts=["The pumps are tested yearly."])

    class FlippingIndex:
        """Another version becomes active between the snapshot and the search."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.index, name)

        def search(self, *args: Any, **kwargs: Any) -> Any:
            world.ingest(texts=["The pumps are tested daily."])
            return world.index.search(*args, **kwargs)

    flipping: Any = FlippingIndex()
    sent = completed(ask(asker, replace(deps, index=flipping)))
    assert "yearly" in sent["text"]
    assert "daily" not in sent["text"]
    assert sent["sources"][0]["document_id"] == old.document_id
    later = completed(ask(asker, deps))
    assert "daily" in later["text"]
    assert "yearly" not in later["text"]
    assert later["index_generation"] != sent["index_generation"]


def move_text(world: World, asker: Principal, document_id: str, text: str) -> None:
    """The stored page says the same one character further on."""
    with world.catalog.snapshot(asker) as snapshot:
        version = snapshot.version(document_id)
    moved = lined_page(1, f" {text}")
    world.artifacts.write_pages(asker, version.sha256, version.parser_fingerprint, [moved])


def test_a_part_whose_only_quote_does_not_hold_is_missing(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest("hr/pumps.pdf", PAGES[:1])
    accepted = world.ingest("hr/valves.pdf", PAGES[1:])
    move_text(world, asker, accepted.document_id, PAGES[1])
    single = deps.settings.model_copy(
        update={"answer": deps.settings.answer.model_copy(update={"max_quotes": 1})}
    )
    question = "How often are the pumps tested and who paints the valves red?"
    sent = completed(ask(asker, replace(deps, settings=single), question))
    assert (sent["answer_status"], sent["missing"]) == (
        "partial",
        ["who paints the valves red?"],
    )
    assert "painted" not in sent["text"]


def test_offsets_that_do_not_hold_are_an_error_and_never_a_quote(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    accepted = world.ingest(texts=PAGES[:1])
    move_text(world, asker, accepted.document_id, PAGES[0])
    events = ask(asker, deps)
    assert events[-1].type is EventType.ERROR
    assert events[-1].payload["code"] == "internal_error"
    assert events[-1].payload["retryable"] is False
    assert EventType.TEXT_DELTA not in {event.type for event in events}


def test_a_server_that_is_down_is_a_retryable_error_that_is_stored(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    world.embedder.is_down = True
    events = ask(asker, deps)
    assert types(events) == ["answer.created", "retrieval.queries", "error"]
    assert events[-1].payload["code"] == "models_unavailable"
    assert events[-1].payload["retryable"] is True
    answer_id = events[0].payload["id"]
    stored = world.catalog.answers.load(asker, answer_id)
    assert (stored["answer_status"], stored["text"]) == ("error", "")
    assert world.catalog.answers.events(asker, answer_id, 0) == [e.to_json() for e in events]


def test_an_answer_that_cannot_be_stored_is_not_completed(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)

    class Forgetful:
        def store(self, *args: object) -> None:
            raise CatalogUnavailable("the catalog does not answer")

    class Catalog:
        answers: AnswerCatalog = Forgetful()  # type: ignore[assignment]

        def __getattr__(self, name: str) -> Any:
            return getattr(world.catalog, name)

    broken: Any = Catalog()
    events = ask(asker, replace(deps, catalog=broken))
    assert events[-1].type is EventType.ERROR
    assert events[-1].payload["code"] == "catalog_unavailable"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


def test_closing_the_generator_abandons_the_answer(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    with closing(answer(asker, Asked("ans_left", PUMPS), deps)) as events:
        next(events)
        next(events)
    with pytest.raises(NotFound):
        world.catalog.answers.load(asker, "ans_left")


def test_no_read_transaction_is_open_while_events_are_given_out(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES)
    depth: list[int] = [0]

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.catalog, name)

        def snapshot(self, principal: Principal) -> Any:
            inner = world.catalog.snapshot(principal)

            class Counted:
                def __enter__(self) -> Any:
                    depth[0] += 1
                    return inner.__enter__()

                def __exit__(self, *problem: Any) -> Any:
                    depth[0] -= 1
                    return inner.__exit__(*problem)

            return Counted()

    counting: Any = Counting()
    for _ in answer(asker, Asked("", PUMPS), replace(deps, catalog=counting)):
        assert depth == [0]


@pytest.mark.parametrize("question", ["", "  \n ", "x" * 2001])
def test_a_question_that_is_none_is_refused_before_any_event(
    question: str, deps: AnswerDeps, asker: Principal
) -> None:
    with pytest.raises(InvalidInput):
        answer(asker, Asked("", question), deps)


def test_a_key_without_the_scope_is_refused(deps: AnswerDeps, asker: Principal) -> None:
    with pytest.raises(NotPermitted):
        answer(replace(asker, scopes=frozenset({Scope.INGEST})), Asked("", PUMPS), deps)


def test_the_service_gives_the_same_events_as_json_under_the_given_id(
    world: World, deps: AnswerDeps, asker: Principal
) -> None:
    world.ingest(texts=PAGES[:1])
    asked = Asked("ans_given", f" {PUMPS} \n")
    events = list(Answering(deps)(asker, asked))
    assert events[0]["id"] == "ans_given"
    assert events[-1]["answer"]["question"] == f" {PUMPS} \n"
    assert world.catalog.answers.load(asker, "ans_given") == events[-1]["answer"]
