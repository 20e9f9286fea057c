"""The bytes that a token of the vocabulary stands for.

A vocabulary spells bytes with characters. Two ways are in use: byte-level (GPT-2 and nearly all
since), where every character stands for one byte, and sentencepiece's, where text is text, a space
is U+2581 and odd bytes are written `<0xE2>`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPACE = "\u2581"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenSpelling(Protocol):
    """How to read a vocabulary. `strips_first_space`: a text's first space is not part of it."""

    strips_first_space: bool

    def bytes_of(self, token: str) -> bytes:
        """The bytes that the token adds to a text."""
        ...


class ByteLevelSpelling:
    """A token with a character outside the table (an added token) stands for its own text."""

    strips_first_space = False

    def __init__(self) -> None:
        self._bytes = byte_level_table()

    def bytes_of(self, token: str) -> bytes:
        table = self._bytes
        if all(character in table for character in token):
            return bytes(table[character] for character in token)
        return token.encode()


class SentencePieceSpelling:
    def __init__(self, *, strips_first_space: bool) -> None:
        self.strips_first_space = strips_first_space

    def bytes_of(self, token: str) -> bytes:
        match = _BYTE.fullmatch(token)
        if match is not None:
            return bytes([int(match[1], 16)])
        return token.replace(_SPACE, " ").encode()


def byte_level_table() -> dict[str, int]:
    """Character -> byte: printing Latin-1 characters stand for themselves, the other bytes for
    U+0100 and on, in order (GPT-2)."""
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printing]
    table = {chr(byte): byte for byte in printing}
    return table | {chr(0x100 + number): byte for number, byte in enumerate(others)}


def spelling_of(tokenizer: Tokenizer) -> TokenSpelling:
    """The spelling that the tokenizer's decoder undoes.

    Raises ModelLoadError for a decoder whose output cannot be given token by token.
    """
    decoder = tokenizer.decoder
    if decoder is None:
        raise ModelLoadError("the tokenizer has no decoder")
    steps = _steps(json.loads(decoder.__getstate__()))
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return ByteLevelSpelling()
    if kinds[:3] == ["Replace", "ByteFallback", "Fuse"] and _replaces_space(steps[0]):
        if kinds[3:] == []:
            return SentencePieceSpelling(strips_first_space=False)
        if kinds[3:] == ["Strip"] and _strip_of(steps[3]) == (" ", 1, 0):
            return SentencePieceSpelling(strips_first_space=True)
    raise ModelLoadError(f"the tokenizer's decoder ({' + '.join(kinds)}) is not supported")


def _steps(decoder: dict[str, Any]) -> list[dict[str, Any]]:
    if decoder["type"] != "Sequence":
        return [decoder]
    return [step for part in decoder["decoders"] for step in _steps(part)]


def _replaces_space(step: dict[str, Any]) -> bool:
    return step.get("pattern") == {"String": _SPACE} and step.get("content") == " "


def _strip_of(step: dict[str, Any]) -> tuple[Any, Any, Any]:
    return step.get("content"), step.get("start"), step.get("stop")
