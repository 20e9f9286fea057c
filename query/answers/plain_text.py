"""Nothing that an answer shows can act: no image, no link, no markup of HTML.

What a Markdown or HTML reader would act on is parted by a space, wherever it stands, so that text
keeps its words. Text that a language model wrote gets no address that readers turn into a link by
themselves, either: a document may have told the model to write one.
"""

from __future__ import annotations

import regex

__all__ = ["InertStream", "clean", "inert_quote"]

# `](`, `][`, `]:`, `![` of Markdown; `<tag`, `</`, `<!`, `<?`; `<|` of chat templates.
_MARKUP = r"(?<=[\]!])(?=[(\[:])|(?<=<)(?=[\p{L}/!?|])"
_QUOTED = regex.compile(_MARKUP)
_WRITTEN = regex.compile(rf"{_MARKUP}|(?<=:)(?=/)|(?<=www)(?=\.)", regex.IGNORECASE)
_REACH = 3  # characters before a place that the patterns look at
# Controls (also those that turn the direction of text), and halves of characters.
_UNSHOWN = regex.compile(
    r"[[\p{Cc}\p{Cs}\u2028\u2029\u202A-\u202E\u2066-\u2069]--[\n\t]]", regex.VERSION1
)


def inert_quote(text: str) -> str:
    """A quote that cannot act; it differs from the text in white space only."""
    return _QUOTED.sub(" ", text)


def clean(text: str) -> str:
    """A piece of written text without characters that show nothing."""
    return _UNSHOWN.sub("", text)


class InertStream:
    """Written text that comes in pieces; what `push` gives is final."""

    def __init__(self) -> None:
        self._before = ""

    def push(self, text: str) -> str:
        """The piece, parted wherever it or its border with what came before would act."""
        given = len(self._before)
        found = _WRITTEN.sub(" ", self._before + text, pos=given)[given:]
        self._before = (self._before + found)[-_REACH:]
        return found
