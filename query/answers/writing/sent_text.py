"""Written text as it was sent, and where in it the sentences and markers of the generator stand.

Sentences are cut from the stream of words after the words were sent, and a few are tidied on the
way (white space, a phrase that lost its marker). They are found again by their characters without
white space, each after the one before it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from core.domain.answers import TextRange

__all__ = ["SentMarker", "SentText", "Span"]

_MAX_TIDIED = 80  # characters that tidying takes from the beginning of a sentence


@dataclass(frozen=True, slots=True)
class SentMarker:
    """`[n]` in the text; `number` of the passage."""

    number: int
    n: int
    place: TextRange


@dataclass(frozen=True, slots=True)
class Span:
    """A sentence in the text, `[start, end)`; `letters` are the places of its characters but white
    space and markers."""

    start: int
    end: int
    letters: tuple[int, ...] = ()

    def supported_by(self, marker: SentMarker) -> tuple[int, int]:
        """What a marker of this sentence supports: what stands before it, or all of the sentence
        for one at its beginning."""
        before = [place for place in self.letters if place < marker.place.start]
        return self.start, (before[-1] + 1 if before else self.end)


@dataclass
class SentText:
    """Places are code points of the answer's text. `length` of it was sent."""

    length: int = 0
    _letters: str = ""  # sent, and of no sentence yet
    _places: list[int] = field(default_factory=list)
    _breaks: list[int] = field(default_factory=list)  # line ends
    _markers: list[SentMarker] = field(default_factory=list)

    def add_words(self, text: str) -> None:
        for place, character in enumerate(text, self.length):
            if character == "\n":
                self._breaks.append(place)
            if not character.isspace():
                self._letters += character
                self._places.append(place)
        self.length += len(text)

    def add_marker(self, text: str, number: int, n: int) -> None:
        """`text` ends with the marker `[n]`; before it is white space at the most."""
        end = self.length + len(text)
        self._markers.append(SentMarker(number, n, TextRange(end - len(f"[{n}]"), end)))
        self.length = end

    def take_sentence(self, text: str) -> Span:
        """Where the next sentence stands."""
        wanted = "".join(text.split())
        if not self._letters or not wanted:
            return Span(self.length, self.length)
        found = self._letters.find(wanted)
        if found < 0:  # its first letter was made a capital
            found = max(0, self._letters.find(wanted[1:]) - 1)
        if found > _MAX_TIDIED:
            found = 0
        count = min(found + len(wanted), len(self._letters))
        places = tuple(self._places[:count])
        self._letters, self._places = self._letters[count:], self._places[count:]
        return Span(places[0], places[-1] + 1, places)

    def take_markers(self, span: Span, cited: Collection[int]) -> list[SentMarker]:
        """The markers of a sentence that cites these passages: those up to the next sentence, and
        on a later line only what nothing nearer cites."""
        limit = self._places[0] if self._places else self.length
        near = [m for m in self._markers if m.place.start < limit and m.number in cited]
        own = [m for m in near if not self._is_parted(span.end, m.place.start)]
        known = {marker.number for marker in own}
        own += [m for m in near if m not in own and m.number not in known]
        self._markers = [m for m in self._markers if m not in own]
        return sorted(own, key=lambda m: m.place.start)

    def take_rest(self) -> list[SentMarker]:
        """The markers of no sentence."""
        rest, self._markers = self._markers, []
        return rest

    def _is_parted(self, end: int, start: int) -> bool:
        return any(end <= place < start for place in self._breaks)
