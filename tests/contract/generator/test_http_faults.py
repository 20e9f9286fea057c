"""The generator over HTTP against servers that fail in every way a real one can."""

import socket
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import anyio
import pytest
from pydantic import SecretStr

from core.adapters.generate_http import HttpGenerator
from core.domain.generation import (
    ChatMessage,
    GenerationEnd,
    GenerationRequest,
    GeneratorInfo,
    TextPiece,
)
from core.errors import GeneratorUnavailable, InvalidInput, Overloaded, PinciteError, TimedOut
from core.settings import GeneratorSettings
from tests.contract.generator import openai_shape
from tests.contract.generator.openai_shape import chunk, usage
from tests.scripted_server import Connection, Received, ScriptedServer, scripted
from tests.stack import free_ports

REQUEST = GenerationRequest(
    (ChatMessage("user", "secret-canary"),), 16, cache_salt="salt", shared_prefix_tokens=3
)
Script = Callable[[Connection], None]


def answering(script: Script) -> Callable[[Received, Connection], None]:
    """Completions as in the script, everything else as usual."""

    def respond(request: Received, connection: Connection) -> None:
        if request.path == "/v1/chat/completions":
            script(connection)
        else:
            openai_shape.respond(request, connection)

    return respond


def generator_of(server: ScriptedServer, **settings: Any) -> HttpGenerator:
    return HttpGenerator(GeneratorSettings(url=server.url, **settings))


async def outcome(generator: HttpGenerator) -> tuple[str, GenerationEnd | PinciteError]:
    """The text, and the end or the error."""
    text = ""
    with closing(generator):
        try:
            async for event in generator.stream(REQUEST):
                if isinstance(event, GenerationEnd):
                    return text, event
                text += event.text
        except PinciteError as error:
            return text, error
    raise AssertionError("a stream without an end")


async def told(script: Script, **settings: Any) -> tuple[str, GenerationEnd | PinciteError]:
    with scripted(answering(script)) as server:
        return await outcome(generator_of(server, **settings))


def begun(*pieces: str) -> Script:
    """Some text, and then the connection ends."""

    def script(connection: Connection) -> None:
        connection.begin_events()
        for piece in pieces:
            connection.event(chunk({"content": piece}))

    return script


async def test_nobody_listens() -> None:
    (port,) = free_ports(1)
    text, error = await outcome(HttpGenerator(GeneratorSettings(url=f"http://127.0.0.1:{port}")))
    assert text == ""
    assert isinstance(error, GeneratorUnavailable)
    assert "canary" not in error.message


async def test_a_stream_that_ends_too_early_is_no_answer() -> None:
    text, error = await told(begun("The pumps", " are"))
    assert text == "The pumps are"
    assert isinstance(error, GeneratorUnavailable)


async def test_a_killed_server_is_noticed_in_the_middle() -> None:
    def script(connection: Connection) -> None:
        begun("The")(connection)
        connection.reset()

    text, error = await told(script)
    assert isinstance(error, GeneratorUnavailable)
    assert text in {"", "The"}  # a reset may overtake what was sent


async def test_a_queue_that_is_full_tells_when_to_come_again() -> None:
    body = {"error": {"message": "secret-canary", "code": "queue_full"}}
    _, error = await told(lambda connection: connection.answer(429, body, Retry_After="7"))
    assert isinstance(error, Overloaded)
    assert error.retry_after_s == 7
    assert "canary" not in error.message


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (413, InvalidInput),
        (422, InvalidInput),
        (401, GeneratorUnavailable),
        (403, GeneratorUnavailable),
        (404, GeneratorUnavailable),
        (500, GeneratorUnavailable),
        (503, GeneratorUnavailable),
        (302, GeneratorUnavailable),
    ],
)
async def test_refusals_have_their_kind_and_repeat_nothing(
    status: int, kind: type[PinciteError]
) -> None:
    body = {"error": {"message": "secret-canary is too long", "code": "prompt_too_long"}}
    _, error = await told(lambda connection: connection.answer(status, body))
    assert type(error) is kind
    assert "canary" not in f"{error.message} {error.hint}"


async def test_a_refusal_need_not_be_json() -> None:
    _, error = await told(lambda connection: connection.answer(500, b"\xff" * 100_000))
    assert isinstance(error, GeneratorUnavailable)


@pytest.mark.parametrize("starts", [False, True], ids=["no head", "head but no token"])
async def test_a_first_token_that_does_not_come_is_late(starts: bool) -> None:
    left = threading.Event()

    def script(connection: Connection) -> None:
        if starts:
            connection.begin_events()
            connection.event(chunk({"role": "assistant", "content": ""}))
        connection.wait_for_leaving()
        left.set()

    text, error = await told(script, first_token_timeout_s=0.2)
    assert text == ""
    assert isinstance(error, TimedOut)
    assert left.is_set()


async def test_a_generation_that_does_not_end_is_late() -> None:
    def script(connection: Connection) -> None:
        begun("The")(connection)
        connection.wait_for_leaving()

    text, error = await told(script, timeout_s=0.3)
    assert text == "The"
    assert isinstance(error, TimedOut)


GARBAGE: dict[str, bytes] = {
    "not JSON": b"data: {\n\n",
    "a list": b"data: []\n\n",
    "a number": b"data: 7\n\n",
    "a choice that is none": b'data: {"choices": [7]}\n\n',
    "content that is none": b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
    "usage that is none": b'data: {"choices": [], "usage": {"prompt_tokens": "x"}}\n\n',
    "not UTF-8": b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n',
    "half a character at the end": b"data: \xc3",
    "nothing": b"",
    "only an end": b"data: [DONE]\n\n",
    "a page": b"<html><body>hello</body></html>\n\n",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_is_no_answer(data: bytes) -> None:
    def script(connection: Connection) -> None:
        connection.begin_events()
        connection.send(data)

    _, error = await told(script)
    assert isinstance(error, GeneratorUnavailable)


async def test_a_line_without_end_is_given_up() -> None:
    def script(connection: Connection) -> None:
        connection.begin_events()
        while True:  # until the client leaves
            connection.send(b"x" * 100_000)

    _, error = await told(script)
    assert isinstance(error, GeneratorUnavailable)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "secret-canary", "code": "engine_error"}, GeneratorUnavailable),
        ({"message": "secret-canary", "code": 429}, Overloaded),
        ("secret-canary" * 50, GeneratorUnavailable),
    ],
)
async def test_an_error_in_the_stream_is_one(error: Any, kind: type[PinciteError]) -> None:
    def script(connection: Connection) -> None:
        begun("The")(connection)
        connection.event({"error": error})

    text, found = await told(script)
    assert text == "The"
    assert type(found) is kind
    assert "canary" not in found.message


async def test_bytes_may_be_cut_anywhere() -> None:
    wire = (
        b": a comment\r\n\r\n"
        + 'data: {"choices": [{"delta": {"content": "\u2028ä\u0085😀"}}]}\r\n\r\n'.encode()
        + b'event: x\ndata: {"choices":\ndata: [{"delta": {}, "finish_reason": "stop"}]}\n\n'
        + b"data:[DONE]\n\n"
    )

    def script(connection: Connection) -> None:
        connection.begin_events()
        for place in range(len(wire)):
            connection.send(wire[place : place + 1])

    text, end = await told(script)
    assert text == "\u2028ä\u0085😀"
    assert isinstance(end, GenerationEnd)


async def test_usage_is_what_the_server_says() -> None:
    def script(connection: Connection) -> None:
        begun("The")(connection)
        connection.event(chunk({}, "length"))
        connection.event({**usage(90, 3, 64), "pincite": {"queue_ms": 12.5}})
        connection.event("[DONE]")

    _, end = await told(script)
    assert isinstance(end, GenerationEnd)
    assert (end.finish_reason, end.queue_ms) == ("length", 12.5)
    found = end.usage
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (90, 64, 3)


async def test_a_server_that_tells_no_usage_and_no_end_mark_is_fine() -> None:
    def script(connection: Connection) -> None:
        begun("The")(connection)
        connection.event(chunk({}, "stop"))

    text, end = await told(script)
    assert text == "The"
    assert isinstance(end, GenerationEnd)
    assert end.usage.prompt_tokens == 0


async def test_leaving_closes_the_connection_at_once() -> None:
    """During the prompt's computation, before there is anything to send."""

    def script(connection: Connection) -> None:
        connection.begin_events()
        connection.wait_for_leaving()

    with scripted(answering(script)) as server, closing(generator_of(server)) as generator:
        with anyio.move_on_after(0.1):
            async for _ in generator.stream(REQUEST):
                raise AssertionError
        (connection,) = server.connections[1:]
        assert connection.was_left.wait(10)


async def test_the_extension_is_only_for_who_understands_it() -> None:
    bodies: dict[bool, dict[str, Any]] = {}
    for is_ours in (True, False):

        def respond(request: Received, connection: Connection, ours: bool = is_ours) -> None:
            if request.path == "/v1/models" and not ours:
                connection.answer(200, {"data": [{"id": "theirs"}]})
            else:
                openai_shape.respond(request, connection)

        with scripted(respond) as server:
            settings = {"api_key": SecretStr("key"), "model": "" if is_ours else "theirs"}
            await outcome(generator_of(server, **settings))
            (sent,) = server.of_path("/v1/chat/completions")
            assert sent.headers["authorization"] == "Bearer key"
            bodies[is_ours] = sent.body
    assert bodies[True]["pincite"] == {"cache_salt": "salt", "shared_prefix_tokens": 3}
    assert "pincite" not in bodies[False]
    assert bodies[False]["model"] == "theirs"
    assert bodies[False]["stream_options"] == {"include_usage": True}


def test_where_nothing_counts_the_estimate_is_rather_too_high() -> None:
    def respond(request: Received, connection: Connection) -> None:
        connection.answer(200, {"data": [{"id": "theirs"}]})

    texts = {"The pumps are tested yearly by the operator.": 9, "漢字かな交じり文": 8, "12345": 5}
    with scripted(respond) as server, closing(generator_of(server)) as generator:
        for text, real in texts.items():
            found = generator.count_tokens([ChatMessage("user", text)], opens_answer=True)
            assert real <= found <= 6 * real + 24
        assert server.of_path("/tokenize") == []


@pytest.mark.parametrize(
    "listed", [{"data": []}, {"data": [{}]}, {}, [], {"data": None}, b"<html>", b"\xff"]
)
def test_models_that_cannot_be_read(listed: Any) -> None:
    def respond(request: Received, connection: Connection) -> None:
        connection.answer(200, listed)

    with (
        scripted(respond) as server,
        closing(generator_of(server)) as generator,
        pytest.raises(GeneratorUnavailable),
    ):
        generator.info()


def test_a_model_that_is_not_listed_is_asked_by_its_name() -> None:
    with scripted(openai_shape.respond) as server:
        with closing(generator_of(server, model="alias")) as generator:
            info = generator.info()
        assert (info.model, info.max_model_tokens, info.capabilities) == (
            "alias",
            None,
            frozenset(),
        )
        with closing(generator_of(server, model="other")) as other:
            assert other.info().fingerprint != info.fingerprint


async def test_another_model_after_a_restart_is_noticed() -> None:
    """A verdict of the gate belongs to the weights that it was given on."""
    answers = {"fingerprint": "old", "fails": True}

    def respond(request: Received, connection: Connection) -> None:
        if request.path == "/v1/models":
            connection.answer(200, openai_shape.models(fingerprint=answers["fingerprint"]))
        elif answers["fails"]:
            connection.reset()
        else:
            openai_shape.respond(request, connection)

    with scripted(respond) as server, closing(generator_of(server)) as generator:
        assert generator.info().fingerprint == "old"
        answers["fingerprint"] = "new"
        assert generator.info().fingerprint == "old"
        with pytest.raises(GeneratorUnavailable):
            async for _ in generator.stream(REQUEST):
                pass
        assert generator.info().fingerprint == "new"


def test_a_server_that_just_failed_is_not_waited_for_again() -> None:
    now = [100.0]

    def respond(request: Received, connection: Connection) -> None:
        connection.answer(503, {"error": {"message": "loading", "code": "loading"}})

    with scripted(respond) as server:
        settings = GeneratorSettings(url=server.url)
        with closing(HttpGenerator(settings, monotonic=lambda: now[0])) as generator:
            for _ in range(3):
                with pytest.raises(GeneratorUnavailable):
                    generator.info()
            assert len(server.requests) == 1
            now[0] += 2.0
            with pytest.raises(GeneratorUnavailable):
                generator.info()
            assert len(server.requests) == 2


async def test_a_generation_is_never_sent_twice() -> None:
    with scripted(answering(lambda connection: connection.reset())) as server:
        _, error = await outcome(generator_of(server))
        assert isinstance(error, GeneratorUnavailable)
        assert len(server.of_path("/v1/chat/completions")) == 1


async def test_pieces_are_given_out_as_they_come() -> None:
    """Not when the whole is there."""
    may_go_on = threading.Event()

    def script(connection: Connection) -> None:
        begun("The")(connection)
        assert may_go_on.wait(20)
        connection.event(chunk({"content": " pumps"}))
        connection.event(chunk({}, "stop"))

    with scripted(answering(script)) as server, closing(generator_of(server)) as generator:
        texts = []
        async for event in generator.stream(REQUEST):
            if isinstance(event, TextPiece):
                texts.append(event.text)
                may_go_on.set()
        assert texts == ["The", " pumps"]


async def test_an_address_with_tls_is_spoken_to_with_tls() -> None:
    """A server that does not speak it is no generator; nothing is sent to it in the clear."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            for _ in range(2):
                stream, _ = listener.accept()
                with stream:
                    seen.append(stream.recv(1_000))

        thread = threading.Thread(target=accept)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        with closing(HttpGenerator(GeneratorSettings(url=url))) as generator:
            with pytest.raises(GeneratorUnavailable):
                generator.info()
            generator._info = GeneratorInfo("model", "fingerprint")
            _, error = await outcome(generator)
        thread.join(20)
    assert isinstance(error, GeneratorUnavailable)
    assert [data[:1] for data in seen] == [b"\x16", b"\x16"]  # two handshakes
