"""Written answers over the world of `tests.api_world`: a generator that writes what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.domain.access import Principal, Scope
from core.ports.generator import Generator
from query.answers.answering import AnswerDeps, answer
from query.answers.events import Event, EventType
from query.services import Asked
from tests.api_world import World

PUMPS = "How often are the pumps tested?"
PAGES = ("The pumps are tested yearly. A log is kept.", "Valves are painted red by the operator.")


def written_deps(world: World, generator: Generator | None, **more: Any) -> AnswerDeps:
    """Whatever has evidence is answered; every generator passed the gate."""
    deps = AnswerDeps(
        catalog=world.catalog,
        artifacts=world.artifacts,
        index=world.index,
        embedder=world.embedder,
        settings=world.settings,
        clock=world.clock,
        is_answerable=lambda _reranked, evidence: bool(evidence),
        generator=generator,
        read_gate=lambda _fingerprint: True,
    )
    return replace(deps, **more)


def asker_of(world: World) -> Principal:
    return Principal(world.tenant_ids["documents"], "asker", frozenset({Scope.SEARCH}))


def ask(world: World, deps: AnswerDeps, question: str = PUMPS, **asked: Any) -> list[Event]:
    """All events of one answer."""
    request = Asked(asked.pop("answer_id", ""), question, **asked)
    return list(answer(asker_of(world), request, deps))


def completed(events: Sequence[Event]) -> dict[str, Any]:
    assert events[-1].type is EventType.ANSWER_COMPLETED, events[-1].payload
    found: dict[str, Any] = events[-1].payload["answer"]
    return found


def of_type(events: Sequence[Event], kind: EventType) -> list[dict[str, Any]]:
    return [event.payload for event in events if event.type is kind]


def deltas(events: Sequence[Event]) -> list[str]:
    return [payload["delta"] for payload in of_type(events, EventType.TEXT_DELTA)]


def check(world: World, events: Sequence[Event], answer_id: str | None = None) -> dict[str, Any]:
    """What holds for every answer, however it came about: the stored one is the sent one, and every
    range points at what it claims. Returns the answer."""
    answer_id = answer_id or str(events[0].payload["id"])
    stored = world.catalog.answers.load(asker_of(world), answer_id)
    replayed = world.catalog.answers.events(asker_of(world), answer_id, 0)
    assert replayed == [event.to_json() for event in events]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    if events[-1].type is EventType.ANSWER_COMPLETED:
        assert stored == completed(events)
    text = stored["text"]
    assert "".join(deltas(events)) == text
    told = [payload["citation"] for payload in of_type(events, EventType.CITATION_ADDED)]
    assert told == stored["citations"]
    verified = of_type(events, EventType.CITATION_VERIFIED)
    assert [(one["id"], one["verdict"]) for one in verified] == [
        (one["id"], one["verdict"]) for one in told
    ]
    sentences = [payload["sentence"] for payload in of_type(events, EventType.SENTENCE_VERIFIED)]
    assert sentences == stored["sentences"]
    check_ranges(stored)
    return stored


def check_ranges(stored: dict[str, Any]) -> None:
    text, sources = stored["text"], {source["id"] for source in stored["sources"]}
    ids = [citation["id"] for citation in stored["citations"]]
    assert ids == [f"c{place}" for place in range(1, len(ids) + 1)]
    for citation in stored["citations"]:
        marker = citation["marker"]
        assert text[marker["start"] : marker["end"]] == f"[{citation['n']}]"
        assert 0 <= citation["start"] <= citation["end"] <= len(text)
        assert all(one["source_id"] in sources and one["quote"] for one in citation["sources"])
    at = 0
    for sentence in stored["sentences"]:
        assert at <= sentence["start"] <= sentence["end"] <= len(text)
        shown = text[sentence["start"] : sentence["end"]]
        assert shown == shown.strip()
        assert set(sentence["citation_ids"]) <= set(ids)
        at = sentence["end"]
