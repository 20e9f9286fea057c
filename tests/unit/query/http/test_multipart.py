"""Forms as they arrive: in any pieces, from any browser."""

import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentTooLarge, InvalidInput
from query.http.multipart import MultipartFile

FORM = (
    b'--b0\r\nContent-Disposition: form-data; name="collection"\r\n\r\nhr\r\n'
    b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n'
    b"Content-Type: application/pdf\r\n\r\n%PDF\r\n--b\r\n-data\r\n"
    b'--b0\r\nContent-Disposition: form-data; name="late"\r\n\r\nignored\r\n--b0--\r\n'
)


async def stream(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(form: MultipartFile) -> bytes:
    await form.find()
    return b"".join([piece async for piece in form.pieces()])


@given(cuts=st.lists(st.integers(0, len(FORM)), max_size=12))
async def test_any_cut_gives_the_same_file(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(FORM)]
    pieces = [FORM[low:high] for low, high in itertools.pairwise(edges)]
    form = MultipartFile(stream(*pieces), b"b0", 1000)
    assert await read(form) == b"%PDF\r\n--b\r\n-data"
    assert form.filename == "a.pdf"
    assert form.content_type == "application/pdf"
    assert form.fields == {"collection": "hr"}


def with_name(header: bytes) -> bytes:
    return (
        b'--b0\r\nContent-Disposition: form-data; name="file"; '
        + header
        + b"\r\n\r\nx\r\n--b0--\r\n"
    )


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('filename="Prüfung 日本.pdf"'.encode(), "Prüfung 日本.pdf"),
        (b'filename="a%22b.pdf"', 'a"b.pdf'),
        (b'filename="a\\"b.pdf"', 'a"b.pdf'),
        (b'filename="\xff.pdf"', "\ufffd.pdf"),
        (b'filename=""', ""),
        (b'filename="../../x"', "../../x"),
    ],
)
async def test_names_as_browsers_write_them(header: bytes, name: str) -> None:
    form = MultipartFile(stream(with_name(header)), b"b0", 1000)
    assert await read(form) == b"x"
    assert form.filename == name


async def test_an_endless_form_is_cut_off() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield FORM.removesuffix(b"--b0--\r\n")
        while True:
            yield b"--b0\r\n\r\n" + b"x" * 100_000 + b"\r\n"

    with pytest.raises(DocumentTooLarge):
        await read(MultipartFile(endless(), b"b0", 1000))


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"--b0--",
        b"nothing",
        FORM[: FORM.index(b"-data")],
        FORM.replace(b"; filename", b"; other"),
        b"--b0\r\n" + b"a" * 20_000 + b": x\r\n\r\n",
        b"--b0\r\n" + b"".join(b"h%d: x\r\n" % n for n in range(100)) + b"\r\n",
    ],
)
async def test_what_is_no_form_is_refused(form: bytes) -> None:
    with pytest.raises(InvalidInput):
        await read(MultipartFile(stream(form), b"b0", 1000))
