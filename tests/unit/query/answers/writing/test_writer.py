"""Written answers: what is sent, held, replaced, flagged; and quotes wherever writing fails."""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from core.domain.answers import Usage
from core.domain.generation import ChatMessage, GenerationRequest, GeneratorInfo
from core.errors import (
    GeneratorUnavailable,
    InvalidInput,
    NotFound,
    Overloaded,
    PinciteError,
    TimedOut,
)
from query.answers.answering import answer
from query.answers.events import EventType
from query.answers.writing.prompting import PREFIX
from query.services import Asked
from tests.api_world import World
from tests.fakes.generator import FakeGenerator
from tests.written_world import (
    PAGES,
    PUMPS,
    ask,
    asker_of,
    check,
    completed,
    deltas,
    of_type,
    written_deps,
)

TRUE = "The pumps are tested yearly [1]."
FALSE = "The pumps are tested daily [1]."
QUOTE = "“The pumps are tested yearly.” [1]"


@pytest.fixture
def pumps(world: World) -> World:
    world.ingest(texts=PAGES)
    return world


def modes(sent: dict[str, Any]) -> tuple[str, str]:
    return sent["mode"], sent["mode_reason"]


def test_words_go_out_at_once_with_citations_that_are_verbatim(pumps: World) -> None:
    generator = FakeGenerator("The pumps are tested yearly [1].")
    events = ask(pumps, written_deps(pumps, generator), mode="generative")
    sent = check(pumps, events)
    assert modes(sent) == ("generative", "requested")
    assert sent["text"] == TRUE
    assert len(deltas(events)) > 4
    (citation,) = sent["citations"]
    assert (citation["n"], citation["start"], citation["end"]) == (1, 0, 27)
    assert (citation["verdict"], citation["marker"]) == ("supported", {"start": 28, "end": 31})
    (quoted,) = citation["sources"]
    assert quoted["quote"] == "The pumps are tested yearly."
    (place,) = quoted["locations"]
    assert PAGES[0][place["start"] : place["end"]] == quoted["quote"]
    assert (place["page"], bool(place["rects"])) == (1, True)
    (sentence,) = sent["sentences"]
    assert (sentence["start"], sentence["end"], sentence["verdict"]) == (0, 32, "supported")
    assert sentence["citation_ids"] == ["c1"]
    assert sent["answer_status"] == "answered"
    assert sent["model"] == "fake"


def test_usage_and_timings_are_told_and_stored(pumps: World) -> None:
    deps = written_deps(pumps, FakeGenerator(TRUE))
    first = completed(ask(pumps, deps, mode="generative"))
    second = completed(ask(pumps, deps, mode="generative"))
    assert first["usage"]["completion_tokens"] == 9
    assert first["usage"]["cached_tokens"] == 0
    assert second["usage"]["cached_tokens"] > 50
    assert second["usage"]["prompt_tokens"] >= second["usage"]["cached_tokens"]
    assert first["timings"]["queue_ms"] == 1.5


def test_an_unsupported_sentence_is_flagged_where_it_was_sent(pumps: World) -> None:
    events = ask(pumps, written_deps(pumps, FakeGenerator(f"{FALSE} {TRUE}")), mode="generative")
    sent = check(pumps, events)
    assert sent["text"] == f"{FALSE} {TRUE}"
    assert [s["verdict"] for s in sent["sentences"]] == ["unsupported", "supported"]
    assert [c["verdict"] for c in sent["citations"]] == ["unsupported", "supported"]
    assert [c["n"] for c in sent["citations"]] == [1, 1]


def test_auto_holds_a_sentence_until_it_is_verified(pumps: World) -> None:
    events = ask(pumps, written_deps(pumps, FakeGenerator(TRUE)))
    sent = check(pumps, events)
    assert modes(sent) == ("generative", "gate_passed")
    assert deltas(events) == ["The pumps are tested yearly. [1]"]
    assert sent["citations"][0]["end"] == 28


def test_auto_replaces_what_is_not_supported_before_it_is_sent(pumps: World) -> None:
    page = "The pumps that are tested are painted red."
    pumps.ingest("hr/more.pdf", [page])
    text = f"{TRUE} {FALSE} The pumps are never painted red [2]."
    events = ask(pumps, written_deps(pumps, FakeGenerator(text)))
    sent = check(pumps, events)
    assert "daily" not in "".join(str(event.payload) for event in events)
    assert "never" not in "".join(str(event.payload) for event in events)
    replaced = [s for s in sent["sentences"] if s["is_replaced"]]
    assert len(replaced) == 1
    shown = sent["text"][replaced[0]["start"] : replaced[0]["end"]]
    (citation,) = (c for c in sent["citations"] if c["id"] in replaced[0]["citation_ids"])
    assert shown == f"“{citation['sources'][0]['quote']}”"
    assert sent["text"].count("tested yearly") == 1  # never twice the same quote


def test_auto_quotes_when_nothing_that_was_written_is_supported(pumps: World) -> None:
    events = ask(pumps, written_deps(pumps, FakeGenerator(f"{FALSE} They are blue [1].")))
    sent = check(pumps, events)
    assert modes(sent) == ("extractive", "nothing_supported")
    assert sent["text"].startswith(QUOTE)
    assert sent["model"] == "fake"
    assert sent["usage"]["completion_tokens"] > 0
    quotes = [c["sources"][0]["quote"] for c in sent["citations"]]
    assert len(quotes) == len(set(quotes))


@pytest.mark.parametrize("mode", ["auto", "generative"])
@pytest.mark.parametrize("text", ["", " \n ", "[9]"])
def test_a_generator_that_writes_nothing_is_stood_in_for(
    pumps: World, mode: Any, text: str
) -> None:
    events = ask(pumps, written_deps(pumps, FakeGenerator(text)), mode=mode)
    sent = check(pumps, events)
    assert sent["text"].startswith(QUOTE)
    assert sent["mode"] == "extractive"
    assert sent["mode_reason"] in {"nothing_written", "nothing_supported"}


def test_an_uncited_sentence_is_at_best_weak(pumps: World) -> None:
    events = ask(
        pumps,
        written_deps(pumps, FakeGenerator("The pumps are tested yearly.")),
        mode="generative",
    )
    sent = check(pumps, events)
    assert sent["citations"] == []
    assert [s["verdict"] for s in sent["sentences"]] == ["weak"]


def test_markers_of_no_passage_are_dropped_and_the_others_counted_as_they_come(
    pumps: World,
) -> None:
    text = "A log is kept [7]. The pumps are tested yearly [2][9][1]. Good."
    events = ask(pumps, written_deps(pumps, FakeGenerator(text)), mode="generative")
    sent = check(pumps, events)
    assert sent["text"] == "A log is kept. The pumps are tested yearly [1] [2]. Good."
    assert [citation["n"] for citation in sent["citations"]] == [1, 2]


ERRORS: list[tuple[PinciteError, str]] = [
    (GeneratorUnavailable("gone"), "generator_unavailable"),
    (Overloaded("busy"), "generator_overloaded"),
    (TimedOut("late"), "generator_late"),
    (InvalidInput("no"), "generator_refused"),
]


@pytest.mark.parametrize("mode", ["auto", "generative"])
@pytest.mark.parametrize(("error", "reason"), ERRORS, ids=[reason for _, reason in ERRORS])
def test_quotes_stand_in_for_a_generator_that_fails_before_any_text(
    pumps: World, mode: Any, error: PinciteError, reason: str
) -> None:
    generator = FakeGenerator(TRUE, error=error)
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), mode=mode))
    assert modes(sent) == ("extractive", reason)
    assert sent["text"].startswith(QUOTE)
    assert (sent["answer_status"], sent["model"]) == ("answered", None)
    assert generator.num_open == 0


@pytest.mark.parametrize(("error", "reason"), ERRORS, ids=[reason for _, reason in ERRORS])
def test_quotes_stand_in_for_a_generator_that_tells_nothing_of_itself(
    pumps: World, error: PinciteError, reason: str
) -> None:
    generator = FakeGenerator(TRUE)
    generator.info_error = error
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), mode="generative"))
    assert modes(sent) == ("extractive", reason)
    assert generator.requests == []


def test_auto_ends_with_quotes_when_the_generator_goes_away_in_the_middle(pumps: World) -> None:
    pumps.ingest("hr/more.pdf", ["Pumps are tested by the operator with a gauge."])
    text = "The pumps are tested yearly [1]. They are painted green by the"
    generator = FakeGenerator(text, error=GeneratorUnavailable("gone"), fails_after=14)
    sent = check(pumps, ask(pumps, written_deps(pumps, generator)))
    assert modes(sent) == ("generative", "generator_unavailable")
    assert sent["answer_status"] == "answered"
    assert sent["text"].startswith("The pumps are tested yearly. [1]\n\n“")
    assert "painted green" not in sent["text"]
    assert sent["text"].count("tested yearly") == 1


def test_generative_ends_with_an_error_and_is_stored_as_it_was_sent(pumps: World) -> None:
    text = "The pumps are tested yearly [1]. They are painted green by the"
    generator = FakeGenerator(text, error=GeneratorUnavailable("gone"), fails_after=13)
    events = ask(pumps, written_deps(pumps, generator), mode="generative")
    assert events[-1].type is EventType.ERROR
    assert events[-1].payload["code"] == "generator_unavailable"
    assert events[-1].payload["retryable"] is True
    stored = check(pumps, events)
    assert stored["answer_status"] == "error"
    assert modes(stored) == ("generative", "requested")
    assert stored["text"] == "The pumps are tested yearly [1]. They are painted green"
    assert [s["verdict"] for s in stored["sentences"]] == ["supported", "unsupported"]
    assert len(stored["citations"]) == 1


@pytest.mark.parametrize(
    ("gate", "reason"), [(None, "gate_not_run"), (False, "gate_failed"), (True, "gate_passed")]
)
def test_auto_writes_only_where_the_generator_passed_the_gate(
    pumps: World, gate: bool | None, reason: str
) -> None:
    asked: list[str] = []

    def read_gate(fingerprint: str) -> bool | None:
        asked.append(fingerprint)
        return gate

    generator = FakeGenerator(TRUE)
    deps = written_deps(pumps, generator, read_gate=read_gate)
    events = ask(pumps, deps)
    sent = check(pumps, events)
    assert modes(sent) == ("generative" if gate else "extractive", reason)
    assert (events[0].payload["mode"], events[0].payload["mode_reason"]) == modes(sent)
    assert asked == ["fake-fingerprint"]
    assert len(generator.requests) == (1 if gate else 0)


def test_the_request_decides_over_the_settings(make_world: Callable[..., World]) -> None:
    world = make_world(answer={"mode": "generative"})
    world.ingest(texts=PAGES)
    deps = written_deps(world, FakeGenerator(TRUE))
    assert modes(completed(ask(world, deps))) == ("generative", "configured")
    assert modes(completed(ask(world, deps, mode="extractive"))) == ("extractive", "requested")
    assert modes(completed(ask(world, written_deps(world, None)))) == ("extractive", "no_generator")


def test_nothing_is_generated_for_a_question_that_the_documents_do_not_answer(
    pumps: World,
) -> None:
    generator = FakeGenerator(TRUE)
    deps = written_deps(pumps, generator, is_answerable=lambda _reranked, _evidence: False)
    sent = check(pumps, ask(pumps, deps, mode="generative"))
    assert sent["answer_status"] == "not_in_documents"
    assert modes(sent) == ("extractive", "no_evidence")
    assert generator.requests == []


def test_only_the_parts_that_have_evidence_are_asked(pumps: World) -> None:
    generator = FakeGenerator(TRUE)
    deps = written_deps(
        pumps,
        generator,
        is_answerable=lambda reranked, evidence: (
            bool(evidence) and "canteen" not in reranked.retrieved.question.text
        ),
    )
    question = "How often are the pumps tested and who runs the canteen?"
    sent = check(pumps, ask(pumps, deps, question, mode="generative"))
    assert (sent["answer_status"], sent["missing"]) == ("partial", ["who runs the canteen?"])
    assert sent["text"] == f"{TRUE}\n\nNot in the documents: who runs the canteen?"
    (request,) = generator.requests
    assert "canteen" not in request.messages[-1].content


def test_an_answer_that_is_cut_off_ends_with_a_whole_sentence_in_auto(pumps: World) -> None:
    text = "The pumps are tested yearly [1]. The pumps are"
    generator = FakeGenerator(text)
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), max_tokens=11))
    assert sent["text"] == "The pumps are tested yearly. [1]"
    assert generator.requests[0].max_tokens == 11


@pytest.mark.parametrize("mode", ["auto", "generative"])
def test_nothing_that_was_written_can_act(pumps: World, mode: Any) -> None:
    text = (
        "The pumps are tested yearly ![x](https://evil.example/?q=1) <img src=x> [1]. "
        "The pumps are tested yearly [1](https://evil.example) www.evil.example."
    )
    events = ask(pumps, written_deps(pumps, FakeGenerator(text)), mode=mode)
    sent = check(pumps, events)["text"]
    for active in ("](", "![", "<img", "://", "www.evil"):
        assert active not in sent


def test_a_client_that_leaves_before_the_first_token_stops_the_generation(pumps: World) -> None:
    generator = FakeGenerator(TRUE)
    generator.gate = threading.Event()  # never set: it would compute its prompt for ever
    asked = Asked("ans_left", PUMPS, mode="generative", is_cancelled=generator.started.is_set)
    events = list(answer(asker_of(pumps), asked, written_deps(pumps, generator)))
    assert [event.type for event in events][-1] is EventType.RETRIEVAL_SOURCES
    assert generator.closed.is_set()
    assert generator.num_open == 0
    with pytest.raises(NotFound):
        pumps.catalog.answers.load(asker_of(pumps), "ans_left")


def test_closing_the_events_stops_the_generation(pumps: World) -> None:
    generator = FakeGenerator(TRUE, fails_after=3)
    generator.gate = threading.Event()
    asked = Asked("ans_closed", PUMPS, mode="generative")
    with closing(answer(asker_of(pumps), asked, written_deps(pumps, generator))) as events:
        for event in events:
            if event.type is EventType.TEXT_DELTA:
                break
    assert generator.closed.is_set()
    assert generator.num_open == 0


def test_the_generator_gets_prefix_history_passages_and_question_in_this_order(
    pumps: World,
) -> None:
    history = (
        ChatMessage("user", "  Are there pumps?\n"),
        ChatMessage("assistant", "“There are pumps.” [1]"),
    )
    generator = FakeGenerator(TRUE)
    ask(pumps, written_deps(pumps, generator), mode="generative", history=history)
    (request,) = generator.requests
    assert request.messages[: len(PREFIX)] == PREFIX
    assert request.messages[len(PREFIX) : -1] == history
    last = request.messages[-1].content
    assert last.startswith("Passages:\n[1] handbook, Chapter: The pumps are tested yearly.\n[2] ")
    assert last.endswith(f"\n\nQuestion: {PUMPS}")
    assert request.shared_prefix_tokens == generator.count_tokens(PREFIX, opens_answer=False)
    assert request.temperature == 0


def test_tenants_are_salted_apart_and_not_by_their_ids(pumps: World) -> None:
    pumps.ingest("hr/theirs.pdf", PAGES, bucket="theirs")
    generator = FakeGenerator(TRUE)
    deps = written_deps(pumps, generator)
    for tenant in pumps.tenant_ids.values():
        principal = replace(asker_of(pumps), tenant_id=tenant)
        list(answer(principal, Asked("", PUMPS, mode="generative"), deps))
    salts = [request.cache_salt for request in generator.requests]
    assert len(set(salts)) == len(salts) == 2
    assert not any(tenant in salt for tenant in pumps.tenant_ids.values() for salt in salts)


def test_a_generator_without_the_capability_gets_no_salt(pumps: World) -> None:
    generator = FakeGenerator(TRUE, info=GeneratorInfo("other", "f", None, frozenset()))
    ask(pumps, written_deps(pumps, generator), mode="generative")
    (request,) = generator.requests
    assert (request.cache_salt, request.shared_prefix_tokens) == ("", 0)


def test_a_window_that_is_too_small_quotes_and_says_so(pumps: World) -> None:
    generator = FakeGenerator(TRUE, info=GeneratorInfo("small", "f", 64, frozenset()))
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), mode="generative"))
    assert modes(sent) == ("extractive", "prompt_too_long")
    assert generator.requests == []


def test_a_wide_window_gets_whole_passages_and_cites_their_sentences(pumps: World) -> None:
    pages = ["Pumps are heavy. The pumps are tested yearly. A log of it is kept by the operator."]
    pumps.ingest("hr/wide.pdf", pages)
    generator = FakeGenerator(
        "A log is kept by the operator [1].",
        info=GeneratorInfo("wide", "f", 32_768, frozenset()),
    )

    def write(request: GenerationRequest) -> str:
        lines = request.messages[-1].content.splitlines()
        (number,) = (line[1] for line in lines if "Pumps are heavy." in line)
        return f"A log of it is kept by the operator [{number}]."

    generator.write = write
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), mode="generative"))
    (citation,) = sent["citations"]
    assert citation["sources"][0]["quote"] == "A log of it is kept by the operator."
    assert citation["verdict"] == "supported"


def test_a_sentence_that_merges_two_of_a_passage_shows_both(pumps: World) -> None:
    pages = ["Pumps are heavy. The pumps are tested yearly. The pumps are painted blue."]
    pumps.ingest("hr/wide.pdf", pages)
    generator = FakeGenerator(info=GeneratorInfo("wide", "f", 32_768, frozenset()))

    def write(request: GenerationRequest) -> str:
        lines = request.messages[-1].content.splitlines()
        (number,) = (line[1] for line in lines if "Pumps are heavy." in line)
        return f"The pumps are tested yearly and painted blue [{number}]."

    generator.write = write
    sent = check(pumps, ask(pumps, written_deps(pumps, generator), mode="generative"))
    (citation,) = sent["citations"]
    assert {one["quote"] for one in citation["sources"]} == {
        "The pumps are tested yearly.",
        "The pumps are painted blue.",
    }
    assert citation["verdict"] == "supported"
    assert all(one["locations"] for one in citation["sources"])


def test_a_conversation_and_what_condensing_took_are_stored(pumps: World) -> None:
    generator = FakeGenerator(TRUE)
    events = ask(
        pumps,
        written_deps(pumps, generator),
        "And how often?",
        mode="generative",
        standalone=PUMPS,
        condense_ms=3.0,
        conversation_id="conv_1",
    )
    sent = check(pumps, events)
    assert (sent["question"], sent["conversation_id"]) == ("And how often?", "conv_1")
    assert sent["timings"]["condense_ms"] == 3.0
    assert of_type(events, EventType.RETRIEVAL_QUERIES) == [{"queries": [PUMPS]}]
    assert generator.requests[0].messages[-1].content.endswith(PUMPS)


def test_evidence_that_was_deleted_before_it_was_quoted_is_none(pumps: World) -> None:
    """The pages are gone by the time they are read, as after a delete and a purge."""
    world = pumps
    document_id = completed(ask(world, written_deps(world, None)))["sources"][0]["document_id"]

    def delete_then_judge(_reranked: object, evidence: object) -> bool:
        with world.catalog.snapshot(world.owner()) as snapshot:
            sha256 = snapshot.version(document_id).sha256
        world.catalog.intake.delete(world.owner(), document_id, tombstone=False)
        world.artifacts.purge(world.owner(), sha256)
        return bool(evidence)

    events = ask(world, written_deps(world, None, is_answerable=delete_then_judge))
    sent = completed(events)
    assert sent["answer_status"] == "not_in_documents"
    assert sent["citations"] == []
    assert sent["missing"] == [PUMPS]


def test_no_tokens_are_made_up(pumps: World) -> None:
    sent = completed(ask(pumps, written_deps(pumps, None)))
    assert sent["usage"] == dict.fromkeys(Usage.__dataclass_fields__, 0)
    assert sent["model"] is None
