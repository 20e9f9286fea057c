"""Two tokenizers in plain Python, slow and simple: the oracle of those that we build from GGUF.

Written from the algorithms' descriptions (GPT-2's byte-level BPE; sentencepiece's BPE), and from
llama.cpp's account of how each pre-tokenizer cuts text into words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import regex

from tests.builders_gguf import CONTROL, USER_DEFINED, byte_characters

_SPACE = r"\p{White_Space}"
_GPT2 = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+"
    rf"| ?(?:(?!{_SPACE})[^\p{{L}}\p{{N}}])+|{_SPACE}+(?!(?!{_SPACE}).)|{_SPACE}+"
)
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    rf"| ?(?:(?!{_SPACE})[^\p{{L}}\p{{N}}])+[\r\n]*|{_SPACE}*[\r\n]+"
    rf"|{_SPACE}+(?!(?!{_SPACE}).)|{_SPACE}+"
)


def _words(*patterns: str) -> Callable[[str], list[str]]:
    """Each pattern cuts what the one before left; what it does not match is a piece, too."""
    compiled = [regex.compile(pattern, regex.DOTALL) for pattern in patterns]

    def cut(text: str) -> list[str]:
        pieces = [text]
        for pattern in compiled:
            pieces = [part for piece in pieces for part in _isolate(pattern, piece)]
        return pieces

    return cut


def _isolate(pattern: regex.Pattern[str], text: str) -> list[str]:
    parts, position = [], 0
    for match in pattern.finditer(text):
        parts += [text[position : match.start()], match[0]]
        position = match.end()
    return [part for part in (*parts, text[position:]) if part]


WORDS = {
    "gpt-2": _words(_GPT2),
    "smollm": _words(r"\p{N}", _GPT2),
    "llama-bpe": _words(_LLAMA3),
    "qwen2": _words(_LLAMA3.replace("{1,3}", "")),
}


class ByteLevelReference:
    """Merges the pair of lowest rank, leftmost first, until none is left."""

    def __init__(
        self,
        tokens: Sequence[str],
        types: Sequence[int],
        merges: Sequence[str],
        pre: str,
        ignores_merges: bool = False,
    ) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        whole = [
            t for t, kind in zip(tokens, types, strict=True) if kind in (CONTROL, USER_DEFINED)
        ]
        pattern = "|".join(regex.escape(token) for token in sorted(whole, key=len, reverse=True))
        self._whole = regex.compile(f"({pattern})")
        self._cut = WORDS[pre]
        self._ignores_merges = ignores_merges

    def encode(self, text: str) -> list[int]:
        found = []
        for number, part in enumerate(self._whole.split(text)):
            if number % 2:
                found.append(self._ids[part])
            else:
                found += [i for word in self._cut(part) for i in self._word(word)]
        return found

    def _word(self, word: str) -> list[int]:
        characters = byte_characters()
        symbols = [characters[byte] for byte in word.encode()]
        if self._ignores_merges and "".join(symbols) in self._ids:
            return [self._ids["".join(symbols)]]
        while True:
            pairs = list(pairwise(symbols))
            ranked = [
                (self._ranks[pair], at) for at, pair in enumerate(pairs) if pair in self._ranks
            ]
            if not ranked:
                return [self._ids[symbol] for symbol in symbols]
            _, at = min(ranked)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


class SentencePieceReference:
    """Merges the neighbours whose union has the highest value, leftmost first."""

    def __init__(self, tokens: Sequence[str], values: Sequence[float]) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._values = dict(zip(tokens, values, strict=True))

    def encode(self, text: str) -> list[int]:
        symbols = list("\u2581" + text.replace(" ", "\u2581")) if text else []
        while True:
            unions = [left + right for left, right in pairwise(symbols)]
            known = [(-self._values[u], at) for at, u in enumerate(unions) if u in self._values]
            if not known:
                return [i for symbol in symbols for i in self._symbol(symbol)]
            _, at = min(known)
            symbols[at : at + 2] = [unions[at]]

    def _symbol(self, symbol: str) -> list[int]:
        if symbol in self._ids:
            return [self._ids[symbol]]
        return [self._ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
