# ruff: noqa: RUF001 - brackets and commas of many scripts
"""Citation markers out of streamed text: `[1]`, `[1][2]`, `[1, 2]`, `[1-3]`, full-width brackets.

A generator's text comes in pieces that end anywhere. Whatever the pieces, the same words and
markers come out, and no part of a marker is ever let out as text: what may still become one is
held, at most a few dozen characters.

What is a marker: a bracket with nothing but passage numbers of at most three digits. A range counts
as all its numbers. Numbers of no passage are dropped, a marker of nothing else altogether, with the
white space before it. What is not: `[sic]`, `[2024]`, `[1.5]`, an index such as `arr[0]` (glued to
a word, and 0 is no passage), anything in inline code or a fenced block (CommonMark's rules, except
that inline code ends with its line: a lone backtick must not swallow every later citation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import regex

__all__ = ["Cites", "MarkerFilter", "Words"]


@dataclass(frozen=True, slots=True)
class Words:
    """Text without markers. `is_code`: of inline code or a fenced block, delimiters included."""

    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Cites:
    """A marker: numbers of passages that exist, at least one, each once, as they were written."""

    numbers: tuple[int, ...]


_SPACE = r"[ \t\u00A0\u3000]"
_NUMBER = r"[0-9０-９]{1,3}"
_JOINT = r"[,;，；、\-‐-–]"
_MARKER = regex.compile(
    rf"[\[［【]{_SPACE}{{0,2}}(?P<numbers>{_NUMBER}"
    rf"(?:{_SPACE}{{0,2}}{_JOINT}{_SPACE}{{0,2}}{_NUMBER}){{0,15}}){_SPACE}{{0,2}}[\]］】]"
)
_RANGE = regex.compile(rf"({_NUMBER})(?:{_SPACE}*[\-‐-–]{_SPACE}*({_NUMBER}))?")
_PLAIN = regex.compile(r"[^\s\[［【`~]+")
_SPACES = regex.compile(rf"{_SPACE}+")
_BRACKETS = "[［【"
_GLUE = regex.compile(r"[\p{L}\p{N}_]")
_MAX_FENCE_INDENT = 3


class _Mode(Enum):
    TEXT = auto()
    INLINE_CODE = auto()
    FENCE = auto()


class MarkerFilter:
    """Feed it text with `push`, close it with `end`; each gives what is certain by then."""

    def __init__(self, num_passages: int) -> None:
        self._num_passages = num_passages
        self._held = ""
        self._mode = _Mode.TEXT
        self._fence = ""  # the run of backticks or tildes that opened the code
        self._line = ""  # what the line begins with, as long as it is white space
        self._is_line_open = True  # nothing but white space on this line so far
        self._previous = ""  # the last character of text; "" after a marker
        self._is_index = False  # the text so far ends with `word[0]`

    def push(self, text: str) -> list[Words | Cites]:
        """The words and markers that are certain with this text."""
        self._held += text
        return _joined(self._scan(is_final=False))

    def end(self) -> list[Words | Cites]:
        """The rest: what was held is text after all."""
        return _joined(self._scan(is_final=True))

    def _scan(self, *, is_final: bool) -> Iterator[Words | Cites]:
        steps = {
            _Mode.TEXT: self._text_step,
            _Mode.INLINE_CODE: self._code_step,
            _Mode.FENCE: self._code_step,
        }
        while self._held:
            items = steps[self._mode](is_final)
            if items is None:
                return
            yield from items

    def _take(self, length: int, *, is_code: bool = False) -> list[Words | Cites]:
        """The first `length` held characters as words."""
        text, self._held = self._held[:length], self._held[length:]
        self._note(text)
        return [Words(text, is_code)]

    def _note(self, text: str) -> None:
        """Keep in mind where on its line the text ends."""
        last_line = text.rpartition("\n")[2]
        if "\n" in text:
            self._line, self._is_line_open = "", True
        if last_line.strip():
            self._is_line_open = False
        elif self._is_line_open:
            self._line += last_line
        self._previous = text[-1]
        self._is_index = False

    # -- text

    def _text_step(self, is_final: bool) -> list[Words | Cites] | None:
        """One step, or None when more text has to come first."""
        first = self._held[0]
        if plain := _PLAIN.match(self._held):
            return self._take(plain.end())
        if first in "`~":
            return self._delimiter_step(first, is_final)
        spaces = _SPACES.match(self._held)
        start = spaces.end() if spaces else 0
        if start == len(self._held) and not is_final:
            return None
        if self._held[start : start + 1] in _BRACKETS and start < len(self._held):
            return self._bracket_step(start, is_final)
        return self._take(max(start, 1))

    def _delimiter_step(self, character: str, is_final: bool) -> list[Words | Cites] | None:
        length = _run_length(self._held, character)
        if length == len(self._held) and not is_final:
            return None
        opens_fence = length >= 3 and self._is_line_open and len(self._line) <= _MAX_FENCE_INDENT
        if character == "~" and not opens_fence:
            return self._take(length)
        self._mode = _Mode.FENCE if opens_fence else _Mode.INLINE_CODE
        self._fence = character * length
        return self._take(length, is_code=True)

    def _bracket_step(self, start: int, is_final: bool) -> list[Words | Cites] | None:
        """A bracket after `start` characters of white space: a marker, text, or not yet known."""
        marker = _MARKER.match(self._held, start, partial=not is_final)
        if marker is None:
            return self._take(start + 1)
        if marker.partial:
            return None
        numbers = _numbers(marker["numbers"])
        is_glued = start == 0 and (self._is_index or _GLUE.match(self._previous) is not None)
        if is_glued and (self._is_index or not any(numbers)):
            items = self._take(marker.end())
            self._is_index = True
            return items
        known = tuple(n for n in numbers if 1 <= n <= self._num_passages)
        if not known:
            return self._drop(marker.end(), is_final)
        items = self._take(start) if start else []
        self._held = self._held[marker.end() - start :]
        self._previous, self._is_line_open = "", False
        return [*items, Cites(known)]

    def _drop(self, end: int, is_final: bool) -> list[Words | Cites] | None:
        """Drop a marker that cites nothing; where it opens a line, with the space after it."""
        if self._is_line_open:
            spaces = _SPACES.match(self._held, end)
            end = spaces.end() if spaces else end
            if end == len(self._held) and not is_final:
                return None
        self._held = self._held[end:]
        return []

    # -- code

    def _code_step(self, is_final: bool) -> list[Words | Cites] | None:
        character = self._fence[0]
        if self._held[0] == character:
            length = _run_length(self._held, character)
            if length == len(self._held) and not is_final:
                return None
            if self._closes(length):
                self._mode = _Mode.TEXT
            return self._take(length, is_code=True)
        if self._mode is _Mode.INLINE_CODE and self._held[0] == "\n":
            self._mode = _Mode.TEXT
            return self._take(1)
        stops = (character, "\n") if self._mode is _Mode.INLINE_CODE else (character,)
        ends = [at for stop in stops if (at := self._held.find(stop)) >= 0]
        return self._take(min(ends, default=len(self._held)), is_code=True)

    def _closes(self, length: int) -> bool:
        if self._mode is _Mode.INLINE_CODE:
            return length == len(self._fence)
        return (
            length >= len(self._fence)
            and self._is_line_open
            and len(self._line) <= _MAX_FENCE_INDENT
        )


def _run_length(text: str, character: str) -> int:
    return len(text) - len(text.lstrip(character))


def _numbers(listed: str) -> list[int]:
    """`1, 3-5` -> 1, 3, 4, 5, each once; a range that counts down is its two ends."""
    found: dict[int, None] = {}
    for match in _RANGE.finditer(listed):
        first, last = int(match[1]), int(match[2] or match[1])
        found.update(dict.fromkeys(range(first, last + 1) if first <= last else (first, last)))
    return list(found)


def _joined(items: Iterator[Words | Cites]) -> list[Words | Cites]:
    """Neighbouring words of one kind as one item."""
    joined: list[Words | Cites] = []
    for item in items:
        last = joined[-1] if joined else None
        if isinstance(item, Words) and isinstance(last, Words) and item.is_code == last.is_code:
            joined[-1] = Words(last.text + item.text, item.is_code)
        else:
            joined.append(item)
    return joined
