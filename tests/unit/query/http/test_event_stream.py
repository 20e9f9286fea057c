"""Frames, heartbeats, slots, and generators that are stopped."""

import json
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import anyio
import pytest

from core.errors import IndexUnavailable, InternalError, Overloaded
from query.http.event_stream import FinalEvent, LiveEvents, frame
from query.http.slots import Slots
from query.http.worker_events import Event, Failed, HasLeft, running

Receive = Callable[[], Any]


def event(seq: int, **more: Any) -> Event:
    return {"type": "text.delta", "seq": seq, **more}


def slots(limit: int = 2) -> Slots:
    return Slots(limit, "busy", 1.0)


async def never_leaves() -> dict[str, Any]:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


class Sent:
    """What a response sends; `on_body` is told of each piece."""

    def __init__(self, on_body: Callable[[bytes], None] = lambda _: None) -> None:
        self.messages: list[dict[str, Any]] = []
        self._on_body = on_body

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            self._on_body(message["body"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


async def respond(response: Any, sent: Sent, receive: Receive = never_leaves) -> None:
    await response({"type": "http", "method": "POST"}, receive, sent)


def test_a_frame_is_one_line_of_data() -> None:
    text = frame(event(3, delta="a\nb\r\u2028ü\n\nevent: error")).decode()
    lines = text.split("\n")
    assert lines[0] == "event: text.delta"
    assert lines[1] == "id: 3"
    assert json.loads(lines[2].removeprefix("data: "))["delta"] == "a\nb\r\u2028ü\n\nevent: error"
    assert lines[3:] == ["", ""]


async def test_silence_is_broken_by_heartbeats() -> None:
    heard = threading.Event()

    def listen(piece: bytes) -> None:
        if piece.startswith(b":"):
            heard.set()

    def events(_: HasLeft) -> Generator[Event, None, None]:
        yield event(1)
        assert heard.wait(20)
        yield event(2)

    sent = Sent(listen)
    await respond(LiveEvents(events, slots(), runs_on=False, heartbeat_s=0.01), sent)
    body = sent.body.decode()
    assert body.startswith(frame(event(1)).decode())
    assert "\n\n: still here\n\n" in body
    assert body.endswith(frame(event(2)).decode())
    assert sent.messages[-1]["more_body"] is False


@pytest.mark.parametrize("kind", [LiveEvents, FinalEvent])
@pytest.mark.parametrize("runs_on", [False, True])
async def test_a_client_that_leaves_stops_the_work_unless_it_runs_on(
    kind: type[Any], runs_on: bool
) -> None:
    begun, may_go_on, closed = threading.Event(), threading.Event(), threading.Event()
    finished: list[bool] = []

    def events(_: HasLeft) -> Generator[Event, None, None]:
        try:
            yield event(1)
            begun.set()
            while not may_go_on.wait(0.01):
                yield event(2)
            yield event(3)
            finished.append(True)
        finally:
            closed.set()

    async def leaves() -> dict[str, Any]:
        await anyio.to_thread.run_sync(begun.wait)
        return {"type": "http.disconnect"}

    more: dict[str, Any] = (
        {"heartbeat_s": 60} if kind is LiveEvents else {"conclude": lambda _: pytest.fail("sent")}
    )
    if runs_on and kind is FinalEvent:
        from starlette.responses import Response

        more = {"conclude": lambda last: Response(str(last["seq"]))}
    used = slots()
    if runs_on:
        may_go_on.set()
    await respond(kind(events, used, runs_on=runs_on, **more), Sent(), leaves)
    assert closed.is_set()
    assert finished == ([True] if runs_on else [])
    assert used.num_taken == 0


async def test_no_event_at_all_is_our_fault() -> None:
    def events(_: HasLeft) -> Generator[Event, None, None]:
        yield from ()

    for response in (
        LiveEvents(events, slots(), runs_on=False, heartbeat_s=60),
        FinalEvent(events, slots(), runs_on=False, conclude=lambda _: pytest.fail("sent")),
    ):
        sent = Sent()
        with pytest.raises(InternalError):
            await respond(response, sent)
        assert sent.messages == []


async def test_an_error_before_the_first_event_is_raised_as_it_is() -> None:
    def events(_: HasLeft) -> Generator[Event, None, None]:
        for error in [IndexUnavailable("down")]:
            raise error
        yield event(1)

    sent = Sent()
    with pytest.raises(IndexUnavailable):
        await respond(LiveEvents(events, slots(), runs_on=False, heartbeat_s=60), sent)
    assert sent.messages == []


async def test_slots_are_bounded_and_given_back() -> None:
    used = slots(1)

    def events(_: HasLeft) -> Generator[Event, None, None]:
        yield event(1)

    with used.take(), pytest.raises(Overloaded) as caught:
        await respond(LiveEvents(events, used, runs_on=False, heartbeat_s=60), Sent())
    assert caught.value.retry_after_s == 1.0
    with pytest.raises(ZeroDivisionError), used.take():
        raise ZeroDivisionError
    assert used.num_taken == 0
    await respond(LiveEvents(events, used, runs_on=False, heartbeat_s=60), Sent())
    assert used.num_taken == 0


async def test_a_reader_that_leaves_closes_the_generator_in_its_own_thread() -> None:
    threads: list[int] = []

    def events(_: HasLeft) -> Generator[Event, None, None]:
        try:
            for seq in range(1, 1_000_000):
                yield event(seq)
        finally:
            threads.append(threading.get_ident())

    async with running(events, slots()) as items:
        assert await items.receive() == event(1)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_a_generator_that_waits_is_told_that_the_reader_left() -> None:
    heard: list[bool] = []

    def events(has_left: HasLeft) -> Generator[Event, None, None]:
        heard.append(has_left())
        yield event(1)
        while not has_left():  # it gives out nothing meanwhile
            time.sleep(0.001)
        heard.append(True)

    async with running(events, slots()) as items:
        assert await items.receive() == event(1)
    assert heard == [False, True]


async def test_a_slow_reader_does_not_hold_the_work_up() -> None:
    finished = threading.Event()

    def events(_: HasLeft) -> Generator[Event, None, None]:
        for seq in range(1, 500):
            yield event(seq)
        finished.set()

    async with running(events, slots()) as items:
        await anyio.to_thread.run_sync(finished.wait)  # nobody has read anything yet
        found = [item async for item in items]
    assert [item["seq"] for item in found if not isinstance(item, Failed)] == list(range(1, 500))
