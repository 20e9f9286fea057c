"""The few sentences an extractive answer says itself, in the language of the question.

Text is plain. A quote must not smuggle in an image, a link's address or markup, so what a Markdown
or HTML reader would act on is parted by a space; a quote otherwise differs from the page only in
white space.
"""

from __future__ import annotations

import regex

from query.retrieval.questions import Question

_NOT_FOUND = {
    "en": "The documents do not answer this question.",
    "de": "Die Dokumente beantworten diese Frage nicht.",
}
_MISSING = {
    "en": "Not in the documents: {parts}",
    "de": "Nicht in den Dokumenten: {parts}",
}
_ACTIVE = regex.compile(r"(?<=[\]!])(?=[(\[])|(?<=<)(?=[\p{L}/!?])")


def not_found(question: Question) -> str:
    return _NOT_FOUND[_language(question)]


def missing_parts(question: Question, parts: list[str]) -> str:
    return _MISSING[_language(question)].format(parts="; ".join(_shown(part) for part in parts))


def shown_quote(quote: str) -> str:
    """The quote on one line, as plain text."""
    return _shown(quote)


def _shown(text: str) -> str:
    return _ACTIVE.sub(" ", " ".join(text.split()))


def _language(question: Question) -> str:
    return "de" if "de" in question.languages and "en" not in question.languages else "en"
