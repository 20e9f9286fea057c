"""Written answers over real sockets on both sides: a client that leaves, a generator that fails."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

import httpx
import pytest

from core.adapters.generate_http import HttpGenerator
from core.errors import NotFound
from core.settings import GeneratorSettings
from query.answers.answering import Answering
from tests.api_world import World
from tests.contract.generator import openai_shape
from tests.contract.generator.openai_shape import chunk, usage
from tests.scripted_server import Connection, Received, ScriptedServer, scripted
from tests.serving import Served, serving
from tests.stack import wait_until
from tests.wire import WAIT_S, ask, read_until
from tests.written_world import PAGES, PUMPS, asker_of, check_ranges, written_deps

Script = Callable[[Connection], None]


@dataclass(frozen=True)
class Stack:
    """The API, and the generator's server behind it."""

    world: World
    served: Served
    server: ScriptedServer
    secret: str

    def completion(self) -> Connection:
        """The generator's end of the only generation."""
        pairs = zip(self.server.requests, self.server.connections, strict=True)
        (found,) = (c for request, c in pairs if request.path == "/v1/chat/completions")
        return found

    def post(self, **body: object) -> httpx.Response:
        return httpx.post(
            f"{self.served.url}/v1/answers",
            json={"question": PUMPS, **body},
            headers={"Authorization": f"Bearer {self.secret}"},
            timeout=WAIT_S,
        )


@pytest.fixture
def stack_of(world: World) -> Iterator[Callable[[Script], Stack]]:
    """Builds a stack whose generator does what the script says."""
    world.ingest(texts=PAGES)
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(_stack(world, script))


@contextmanager
def _stack(world: World, script: Script) -> Iterator[Stack]:
    def respond(request: Received, connection: Connection) -> None:
        if request.path == "/v1/chat/completions":
            script(connection)
        else:
            openai_shape.respond(request, connection)

    with scripted(respond) as server:
        settings = GeneratorSettings(url=server.url)
        with closing(HttpGenerator(settings)) as generator:
            deps = written_deps(world, generator)
            with (
                closing(deps.generations),
                serving(replace(world.services, answer=Answering(deps))) as served,
            ):
                yield Stack(world, served, server, world.key())


def writing(connection: Connection) -> None:
    connection.begin_events()
    for piece in ("The pumps", " are tested", " yearly [", "1]."):
        connection.event(chunk({"content": piece}))


def finishing(connection: Connection) -> None:
    connection.event(chunk({}, "stop"))
    connection.event(usage(90, 9, 64))
    connection.event("[DONE]")


def is_stored(stack: Stack, answer_id: str) -> bool:
    try:
        stack.world.catalog.answers.load(stack.world.owner(), answer_id)
    except NotFound:
        return False
    return True


def test_a_written_answer_over_the_wire(stack_of: Callable[[Script], Stack]) -> None:
    def script(connection: Connection) -> None:
        writing(connection)
        finishing(connection)

    stack = stack_of(script)
    answer = stack.post(mode="generative").json()
    assert answer["text"] == "The pumps are tested yearly [1]."
    assert (answer["mode"], answer["mode_reason"]) == ("generative", "requested")
    assert answer["usage"]["cached_tokens"] == 64
    check_ranges(answer)
    assert asker_of(stack.world).tenant_id not in str(stack.server.requests)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_before_the_first_token_frees_the_generator(
    stack_of: Callable[[Script], Stack], stream: bool
) -> None:
    computing = threading.Event()

    def script(connection: Connection) -> None:
        computing.set()
        connection.wait_for_leaving()

    stack = stack_of(script)
    connection = stack.served.connect()
    ask(connection, stack.secret, question=PUMPS, mode="generative", stream=stream)
    assert computing.wait(WAIT_S)
    connection.close()
    assert stack.completion().was_left.wait(WAIT_S)
    slots = stack.served.server.config.app.state.answer_slots  # type: ignore[union-attr]
    wait_until(lambda: slots.num_taken == 0, timeout_s=WAIT_S, what="the slot")


def test_a_client_that_leaves_in_the_middle_frees_the_generator(
    stack_of: Callable[[Script], Stack],
) -> None:
    def script(connection: Connection) -> None:
        writing(connection)
        connection.wait_for_leaving()

    stack = stack_of(script)
    connection = stack.served.connect()
    ask(connection, stack.secret, question=PUMPS, mode="generative", stream=True)
    head = read_until(connection, b"event: text.delta")
    connection.close()
    assert stack.completion().was_left.wait(WAIT_S)
    answer_id = head.partition(b'"id":"')[2].partition(b'"')[0].decode()
    assert answer_id.startswith("ans_")
    assert not is_stored(stack, answer_id)


def test_in_the_background_the_generation_goes_on(
    stack_of: Callable[[Script], Stack],
) -> None:
    may_go_on = threading.Event()

    def script(connection: Connection) -> None:
        writing(connection)
        assert may_go_on.wait(WAIT_S)
        finishing(connection)

    stack = stack_of(script)
    connection = stack.served.connect()
    ask(
        connection,
        stack.secret,
        question=PUMPS,
        mode="generative",
        stream=True,
        background=True,
    )
    head = read_until(connection, b"event: text.delta")
    connection.close()
    wait_until(
        lambda: stack.served.num_connections == 0, timeout_s=WAIT_S, what="the connection's end"
    )
    may_go_on.set()
    answer_id = head.partition(b'"id":"')[2].partition(b'"')[0].decode()
    wait_until(lambda: is_stored(stack, answer_id), timeout_s=WAIT_S, what="the answer")


@pytest.mark.parametrize("mode", ["auto", "generative"])
def test_a_generator_that_is_killed_in_the_middle(
    stack_of: Callable[[Script], Stack], mode: str
) -> None:
    """The answer ends with quotes or with a typed error, and is stored as it was sent."""

    sent = threading.Event()

    def script(connection: Connection) -> None:
        writing(connection)
        connection.event(chunk({"content": " They are"}))
        assert sent.wait(WAIT_S)
        connection.reset()

    stack = stack_of(script)
    with closing(stack.served.connect()) as connection:
        ask(connection, stack.secret, question=PUMPS, mode=mode, stream=True)
        data = read_until(connection, b"text.delta")
        sent.set()
        last = b"event: answer.completed" if mode == "auto" else b"event: error"
        while last not in data:
            data += connection.recv(65_536)
    answer_id = data.partition(b'"id":"')[2].partition(b'"')[0].decode()
    stored = stack.world.catalog.answers.load(stack.world.owner(), answer_id)
    check_ranges(stored)
    assert "yearly" in stored["text"]
    if mode == "auto":
        assert stored["answer_status"] == "answered"
        assert stored["mode_reason"] == "generator_unavailable"
        assert "They are" not in stored["text"]
    else:
        assert stored["answer_status"] == "error"
        assert '"code":"generator_unavailable"' in data.decode()


def test_a_generator_that_is_busy_is_stood_in_for(stack_of: Callable[[Script], Stack]) -> None:
    stack = stack_of(lambda connection: connection.answer(429, {"error": {}}, Retry_After="3"))
    answer = stack.post(mode="generative").json()
    assert (answer["mode"], answer["mode_reason"]) == ("extractive", "generator_overloaded")
    assert "tested yearly" in answer["text"]
