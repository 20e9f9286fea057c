"""Reading a body from a worker thread: sizes, hashes, pieces, and clients that stop."""

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest
from starlette.requests import ClientDisconnect

from core.errors import DocumentTooLarge, InvalidInput, TimedOut
from query.http.uploads import HashedBody

T = TypeVar("T")


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


def body_of(stream: AsyncIterator[bytes], max_bytes: int = 1000, idle_s: float = 60) -> HashedBody:
    return HashedBody(stream, max_bytes=max_bytes, idle_s=idle_s)


async def in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)


@pytest.mark.parametrize("size", [1, 3, 4, 100, -1])
async def test_reads_are_whole_whatever_the_pieces(size: int) -> None:
    body = body_of(pieces(b"abc", b"", b"defgh", b"i"))

    def read_all() -> list[bytes]:
        return list(iter(lambda: body.read(size), b""))

    found = await in_thread(read_all)
    assert b"".join(found) == b"abcdefghi"
    assert all(len(piece) == size for piece in found[:-1])
    assert body.sha256 == hashlib.sha256(b"abcdefghi").hexdigest()
    assert body.size_bytes == 9


async def test_the_limit_holds_at_the_first_byte_too_many() -> None:
    assert await in_thread(body_of(pieces(b"x" * 5, b"y" * 5), max_bytes=10).read) == b"xxxxxyyyyy"
    with pytest.raises(DocumentTooLarge, match="10 bytes"):
        await in_thread(body_of(pieces(b"x" * 5, b"y" * 6), max_bytes=10).read)


async def test_what_is_buffered_stays_small() -> None:
    """However large the body, no more is held than one read asks for and one piece beyond."""
    sent = 0

    async def large() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1000
            yield b"x" * 1000

    body = body_of(large(), max_bytes=10_000_000)

    def read_some() -> int:
        taken, most = 0, 0
        while piece := body.read(5_000):
            taken += len(piece)
            most = max(most, sent - taken)
        return most

    assert await in_thread(read_some) <= 1000
    assert body.size_bytes == 1_000_000


async def test_a_client_that_leaves_is_an_error() -> None:
    async def leaving() -> AsyncIterator[bytes]:
        yield b"abc"
        raise ClientDisconnect

    with pytest.raises(InvalidInput, match="broken off"):
        await in_thread(body_of(leaving()).read)


async def test_a_client_that_stands_still_is_not_waited_for() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"abc"
        await anyio.sleep_forever()

    with pytest.raises(TimedOut):
        await in_thread(body_of(silent(), idle_s=0.01).read)
