# ruff: noqa: RUF001 - punctuation of many scripts
"""Streamed words and markers to whole sentences, each with the passages that it cites.

A sentence is given out once it is certain where it ends and which markers are its own: when the
first word of the next one is complete, so one word late. Where it ends is decided by
`core.sentences`, which knows abbreviations, decimals and enumerations; code counts as one word.

Whose marker it is: one inside a sentence, or after its full stop, is that sentence's; one that
opens a line belongs to the line's first sentence, unless nothing else is on the line.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from core.sentences import sentences
from query.answers.markers import Cites, Words

__all__ = ["SentenceAssembler", "WrittenSentence"]


@dataclass(frozen=True, slots=True)
class WrittenSentence:
    """A sentence of a written answer.

    text: without markers and surrounding white space, never empty. cited: passage numbers as they
    first appear. lead: the white space before it; all leads and texts joined are the answer.
    """

    text: str
    cited: tuple[int, ...]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A marker between two characters of the buffer."""

    place: int
    numbers: tuple[int, ...]


_CODE = "Q"  # stands for a character of code: a capital, so that code can begin a sentence
_HORIZONTAL = " \t\u00a0\u3000"
# Before these, or white space, the white space before a removed marker goes too.
_CLOSES = frozenset(".,;:!?…)]}。，；：！？、」』）")
_SURE = regex.compile(r"[。！？｡।॥။។៕།۔؟።։]")
_SURE_TAIL = regex.compile(r"[。！？｡।॥။។៕།۔؟።։\"'”’“»›)\]}」』）】》〉]")
# The first word of what follows is complete.
_WORD_COMPLETE = regex.compile(r"\s+(?:[^\s\p{L}\p{M}\p{N}]+\s+)*\S*[\p{L}\p{N}]\S*\s")
# "According to [1], pumps are ...": without its marker the phrase has lost its object.
_DANGLING = regex.compile(
    r"(?:According to|As (?:stated|described|noted|shown|mentioned|explained) in|Based on|Per"
    r"|Laut|Gemäß|Nach)(?: (?:passage|source|quelle|abschnitt))?\s*",
    regex.IGNORECASE,
)
_COMMA = regex.compile(r"\s*,\s*(?=\p{L})")


class SentenceAssembler:
    """Feed it the items of a `MarkerFilter` with `push`, close it with `end`."""

    def __init__(self) -> None:
        self._text = ""
        self._shape = ""  # the text with its code masked, as long as the text
        self._marks: list[_Mark] = []
        self._tail = ""  # white space that code ended with: of the next sentence's lead

    def push(self, item: Words | Cites) -> list[WrittenSentence]:
        """The sentences that are certain with this item."""
        if isinstance(item, Cites):
            self._marks.append(_Mark(len(self._text), item.numbers))
            return []
        if not item.text:
            return []
        self._add(item)
        return self._cut(is_final=False)

    def end(self) -> list[WrittenSentence]:
        """The sentences that are left; a last one needs no full stop."""
        return self._cut(is_final=True)

    def _add(self, item: Words) -> None:
        text = item.text
        if self._marks and self._marks[-1].place == len(self._text):
            text = self._close_gap(text)
        self._text += text
        self._shape += _CODE * len(text) if item.is_code else text

    def _close_gap(self, text: str) -> str:
        """Leave one white space, or none before punctuation, where a marker was."""
        kept = self._text.rstrip(_HORIZONTAL)
        if text[0].isspace() or text[0] in _CLOSES:
            self._text, self._shape = kept, self._shape[: len(kept)]
            self._marks = [_Mark(min(m.place, len(kept)), m.numbers) for m in self._marks]
        if not kept or kept.endswith("\n"):
            return text.lstrip(_HORIZONTAL)
        return text

    def _cut(self, *, is_final: bool) -> list[WrittenSentence]:
        bounds = sentences(self._shape)
        num_certain = len(bounds) if is_final else self._num_certain(bounds)
        if not num_certain:
            return []
        owners = self._owners(bounds)
        finished: list[WrittenSentence] = []
        at = 0
        for number, (start, end) in enumerate(bounds[:num_certain]):
            own = [m for m, owner in zip(self._marks, owners, strict=True) if owner == number]
            text = self._text[start:end]
            lead, body = self._tail + self._text[at:start], text.strip()
            if body:
                indent = len(text) - len(text.lstrip())
                lead += text[:indent]
                finished.append(_sentence(body, start + indent, lead, own))
                self._tail = text[len(text.rstrip()) :]
            else:
                self._tail = lead + text
            at = end
        self._marks = [
            _Mark(m.place - at, m.numbers)
            for m, owner in zip(self._marks, owners, strict=True)
            if owner >= num_certain
        ]
        self._text, self._shape = self._text[at:], self._shape[at:]
        return finished

    def _num_certain(self, bounds: list[tuple[int, int]]) -> int:
        """How many of the sentences no further text can change."""
        for number in range(len(bounds) - 1, 0, -1):
            if self._is_certain(bounds[number - 1][1], bounds[number][0]):
                return number
        return 0

    def _is_certain(self, end: int, following: int) -> bool:
        gap = self._shape[end:following]
        if "\n" in gap or "\r" in gap:
            # A marker alone on the line may still turn out to be the earlier sentence's.
            return True
        stop = end - 1
        while (
            stop > 0 and _SURE_TAIL.match(self._shape[stop]) and not _SURE.match(self._shape[stop])
        ):
            stop -= 1
        if _SURE.match(self._shape[stop]):
            return not _SURE_TAIL.match(self._shape[following])
        return _WORD_COMPLETE.match(self._shape, end) is not None

    def _owners(self, bounds: list[tuple[int, int]]) -> list[int]:
        """For each marker the number of its sentence."""
        return [self._owner(mark.place, bounds) for mark in self._marks]

    def _owner(self, place: int, bounds: list[tuple[int, int]]) -> int:
        following = sum(end < place for _, end in bounds)  # the first that ends at or after it
        if following == len(bounds):
            return len(bounds) - 1
        start, _ = bounds[following]
        if start < place or following == 0:
            return following
        opens_line = "\n" in self._shape[bounds[following - 1][1] : place]
        is_alone = "\n" in self._shape[place:start]
        return following if opens_line and not is_alone else following - 1


def _sentence(text: str, start: int, lead: str, marks: list[_Mark]) -> WrittenSentence:
    """The sentence that begins at `start` of the buffer."""
    for mark in marks:
        inside = mark.place - start
        if 0 < inside < len(text) and _DANGLING.fullmatch(text[:inside]):
            if comma := _COMMA.match(text, inside):
                text = text[comma.end() :]
                text = text[0].upper() + text[1:]
            break
    cited = dict.fromkeys(number for mark in marks for number in mark.numbers)
    return WrittenSentence(text, tuple(cited), lead)
