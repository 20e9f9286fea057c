"""Written answers by our own engine's server with SmolLM2, over a real socket."""

from contextlib import closing

import pytest

from query.answers.events import EventType
from query.answers.writing.prompting import PREFIX
from tests.api_world import World
from tests.engine_server import EngineServer, engine
from tests.written_world import ask, check, deltas, of_type, written_deps

__all__ = ["engine"]

PAGES = (
    "The feed pumps are tested once a year by the operator. A log of each test is kept.",
    "The bridge was opened to traffic on 14 May 1998. It cost 38 million euros.",
)
QUESTIONS = ("How often are the feed pumps tested?", "When was the bridge opened to traffic?")
pytestmark = pytest.mark.slow


@pytest.fixture
def manual(world: World) -> World:
    world.ingest("plant/manual.pdf", PAGES)
    return world


def test_it_writes_cites_and_reuses_what_it_computed(manual: World, engine: EngineServer) -> None:
    with closing(engine.generator()) as generator:
        deps = written_deps(manual, generator)
        answers = []
        for question in QUESTIONS:
            events = ask(manual, deps, question, mode="generative", max_tokens=48)
            sent = check(manual, events)
            assert (sent["mode"], sent["mode_reason"]) == ("generative", "requested")
            assert sent["text"]
            assert len(deltas(events)) > 1
            assert len(of_type(events, EventType.SENTENCE_VERIFIED)) == len(sent["sentences"]) > 0
            answers.append(sent)
        first, second = (answer["usage"] for answer in answers)
        prefix = generator.count_tokens(PREFIX, opens_answer=False)
        assert second["cached_tokens"] >= prefix // 16 * 16 > 100
        assert all(0 < usage["completion_tokens"] <= 48 for usage in (first, second))
        assert second["prompt_tokens"] > prefix
        assert answers[1]["timings"]["queue_ms"] > 0
        deps.generations.close()


def test_auto_with_a_model_that_passed_no_gate_quotes(manual: World, engine: EngineServer) -> None:
    with closing(engine.generator()) as generator:
        deps = written_deps(manual, generator, read_gate=lambda _fingerprint: None)
        sent = check(manual, ask(manual, deps, QUESTIONS[0]))
        assert (sent["mode"], sent["mode_reason"]) == ("extractive", "gate_not_run")
        assert "once a year" in sent["text"]


def test_tenants_do_not_share_what_is_theirs(manual: World, engine: EngineServer) -> None:
    """The same prompt under two salts: only the constant prefix is found again."""
    del manual
    from core.domain.generation import ChatMessage, GenerationEnd, GenerationRequest
    from query.answers.generating import GenerationLoop
    from query.services import never

    loop, words = GenerationLoop(), "The valve is opened by hand and closed by a spring. " * 6
    with closing(engine.generator()) as generator, closing(loop):
        shared = generator.count_tokens(PREFIX, opens_answer=False)
        cached = []
        for salt in ("one", "one", "two"):
            request = GenerationRequest(
                (*PREFIX, ChatMessage("user", words)),
                4,
                shared_prefix_tokens=shared,
                cache_salt=salt,
            )
            with loop.reading(generator, request, never) as events:
                *_, end = events
            assert isinstance(end, GenerationEnd)
            cached.append(end.usage.cached_tokens)
    assert cached[1] > shared
    assert cached[2] <= shared
