"""The bridge from the asynchronous generator to the thread that makes an answer."""

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from core.domain.generation import (
    ChatMessage,
    GenerationEnd,
    GenerationEvent,
    GenerationRequest,
    TextPiece,
)
from core.errors import GeneratorUnavailable
from query.answers.generating import Abandoned, GenerationLoop
from query.services import never
from tests.fakes.generator import FakeGenerator

REQUEST = GenerationRequest((ChatMessage("user", "hello"),), 16)


@pytest.fixture
def loop() -> Iterator[GenerationLoop]:
    made = GenerationLoop()
    yield made
    made.close()


def test_events_come_in_order_up_to_the_end(loop: GenerationLoop) -> None:
    generator = FakeGenerator("one two three")
    with loop.reading(generator, REQUEST, never) as events:
        *pieces, end = events
    assert [piece.text for piece in pieces if isinstance(piece, TextPiece)] == [
        "one",
        " two",
        " three",
    ]
    assert isinstance(end, GenerationEnd)
    assert generator.num_open == 0


def test_its_errors_are_raised_where_it_is_read(loop: GenerationLoop) -> None:
    generator = FakeGenerator("one two", error=GeneratorUnavailable("gone"), fails_after=1)
    with loop.reading(generator, REQUEST, never) as events:
        assert next(events) == TextPiece("one")
        with pytest.raises(GeneratorUnavailable, match="gone"):
            next(events)
    assert generator.num_open == 0


def test_unforeseen_errors_too(loop: GenerationLoop) -> None:
    generator = FakeGenerator(lambda _: str(1 // 0))
    with loop.reading(generator, REQUEST, never) as events, pytest.raises(ZeroDivisionError):
        next(events)


def test_a_stream_without_an_end_is_no_whole_answer(loop: GenerationLoop) -> None:
    class Endless(FakeGenerator):
        async def stream(self, request: GenerationRequest) -> AsyncIterator[GenerationEvent]:
            yield TextPiece("one")

    with loop.reading(Endless(), REQUEST, never) as events:
        assert next(events) == TextPiece("one")
        with pytest.raises(GeneratorUnavailable):
            next(events)


def test_leaving_the_block_ends_the_generation(loop: GenerationLoop) -> None:
    generator = FakeGenerator("one two", fails_after=1)
    generator.gate = threading.Event()
    with loop.reading(generator, REQUEST, never) as events:
        next(events)
        assert generator.num_open == 1
    assert generator.num_open == 0


def test_it_asks_while_it_waits_whether_anybody_still_wants_it(loop: GenerationLoop) -> None:
    generator = FakeGenerator("one")
    generator.gate = threading.Event()  # never set
    asked: list[bool] = []

    def has_left() -> bool:
        asked.append(generator.started.is_set())
        return len(asked) > 3

    with loop.reading(generator, REQUEST, has_left) as events, pytest.raises(Abandoned):
        next(events)
    assert len(asked) == 4
    assert generator.num_open == 0


def test_several_threads_read_at_once(loop: GenerationLoop) -> None:
    barrier = threading.Barrier(4)
    found: dict[int, str] = {}

    def read(number: int) -> None:
        generator = FakeGenerator(f"number {number}")
        barrier.wait(20)
        with loop.reading(generator, REQUEST, never) as events:
            found[number] = "".join(e.text for e in events if isinstance(e, TextPiece))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == {number: f"number {number}" for number in range(4)}


def test_closing_ends_what_is_under_way() -> None:
    loop = GenerationLoop()
    generator = FakeGenerator("one two", fails_after=1)
    generator.gate = threading.Event()
    with loop.reading(generator, REQUEST, never) as events:
        next(events)
        loop.close()
        assert generator.closed.wait(20)
        with pytest.raises(GeneratorUnavailable):
            next(events)
    loop.close()
