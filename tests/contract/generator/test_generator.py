"""What every implementation of the port Generator does."""

from contextlib import aclosing

import anyio
import anyio.to_thread
import pytest

from core.domain.generation import (
    ChatMessage,
    GenerationEnd,
    GenerationEvent,
    GenerationRequest,
    TextPiece,
)
from core.errors import InvalidInput
from core.ports.generator import Generator
from tests.engine_server import EngineServer

SYSTEM = ChatMessage("system", "You repeat what you are told, word by word.")
MESSAGES = (SYSTEM, ChatMessage("user", "Repeat:\nThe pumps are tested yearly by the operator."))


def asking(max_tokens: int = 24, messages: tuple[ChatMessage, ...] = MESSAGES) -> GenerationRequest:
    return GenerationRequest(messages, max_tokens, cache_salt="tenant", shared_prefix_tokens=8)


async def read(generator: Generator, request: GenerationRequest) -> list[GenerationEvent]:
    return [event async for event in generator.stream(request)]


def test_it_tells_what_it_is(generator: Generator) -> None:
    info = generator.info()
    assert info.model
    assert info.fingerprint
    assert info.max_model_tokens is None or info.max_model_tokens > 256
    assert generator.info() == info


async def test_pieces_then_exactly_one_end(generator: Generator) -> None:
    events = await read(generator, asking())
    *pieces, end = events
    assert isinstance(end, GenerationEnd)
    assert pieces
    assert all(isinstance(piece, TextPiece) and piece.text for piece in pieces)
    assert end.finish_reason in {"stop", "length"}
    assert 0 <= end.queue_ms < 60_000


async def test_usage_counts_what_went_in_and_came_out(generator: Generator) -> None:
    counted = await anyio.to_thread.run_sync(
        lambda: generator.count_tokens(MESSAGES, opens_answer=True)
    )
    first = (await read(generator, asking()))[-1]
    second = (await read(generator, asking()))[-1]
    assert isinstance(first, GenerationEnd)
    assert isinstance(second, GenerationEnd)
    assert 0 < first.usage.prompt_tokens <= counted
    if "tokenize" in generator.info().capabilities:
        assert first.usage.prompt_tokens == counted
    assert 0 < first.usage.completion_tokens <= 24
    assert first.usage.cached_tokens <= second.usage.cached_tokens <= second.usage.prompt_tokens


async def test_greedy_text_is_the_same_again(generator: Generator) -> None:
    def text(events: list[GenerationEvent]) -> str:
        return "".join(event.text for event in events if isinstance(event, TextPiece))

    first, second = await read(generator, asking()), await read(generator, asking())
    assert text(first) == text(second)


async def test_it_stops_at_the_length(generator: Generator) -> None:
    *_, end = await read(generator, asking(max_tokens=2))
    assert isinstance(end, GenerationEnd)
    assert end.finish_reason == "length"
    assert end.usage.completion_tokens == 2


async def test_a_request_beyond_the_window_is_refused(generator: Generator) -> None:
    window = generator.info().max_model_tokens
    if window is None:  # nothing is promised then
        return
    long = ChatMessage("user", "pump " * window)
    with pytest.raises(InvalidInput):
        await read(generator, asking(messages=(SYSTEM, long)))


def test_tokens_grow_with_the_text_and_with_the_opened_answer(generator: Generator) -> None:
    system = generator.count_tokens(MESSAGES[:1], opens_answer=False)
    both = generator.count_tokens(MESSAGES, opens_answer=False)
    opened = generator.count_tokens(MESSAGES, opens_answer=True)
    assert 0 < system < both <= opened
    if "tokenize" in generator.info().capabilities:
        assert both < opened


async def test_reading_can_be_given_up_at_any_time(generator: Generator) -> None:
    async with aclosing(generator.stream(asking(max_tokens=64))) as events:  # type: ignore[type-var]
        async for _ in events:
            break
    with anyio.move_on_after(0.0):
        await read(generator, asking(max_tokens=64))
    assert isinstance((await read(generator, asking()))[-1], GenerationEnd)


async def test_several_at_once_do_not_mix(generator: Generator) -> None:
    words = ("alpha", "beta", "gamma")
    found: dict[str, list[GenerationEvent]] = {}

    async def one(word: str) -> None:
        message = ChatMessage("user", f"Repeat:\n{word} {word} {word}")
        found[word] = await read(generator, asking(messages=(SYSTEM, message)))

    async with anyio.create_task_group() as group:
        for word in words:
            group.start_soon(one, word)
    for word in words:
        assert isinstance(found[word][-1], GenerationEnd)
        text = "".join(e.text for e in found[word] if isinstance(e, TextPiece))
        assert not any(other in text for other in words if other != word)


@pytest.mark.slow
async def test_our_engine_tells_how_long_a_request_waited(engine: EngineServer) -> None:
    generator = engine.generator()
    *_, end = await read(generator, asking())
    generator.close()
    assert isinstance(end, GenerationEnd)
    assert end.queue_ms > 0
