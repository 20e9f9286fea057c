"""The few sentences an extractive answer says itself, in the language of the question.

Text is plain: a quote differs from the page only in white space (query.answers.plain_text).
"""

from __future__ import annotations

from query.answers.plain_text import inert_quote
from query.retrieval.questions import Question

_NOT_FOUND = {
    "en": "The documents do not answer this question.",
    "de": "Die Dokumente beantworten diese Frage nicht.",
}
_MISSING = {
    "en": "Not in the documents: {parts}",
    "de": "Nicht in den Dokumenten: {parts}",
}


def not_found(question: Question) -> str:
    return _NOT_FOUND[_language(question)]


def missing_parts(question: Question, parts: list[str]) -> str:
    return _MISSING[_language(question)].format(parts="; ".join(_shown(part) for part in parts))


def shown_quote(quote: str) -> str:
    """The quote on one line, as plain text."""
    return _shown(quote)


def _shown(text: str) -> str:
    return inert_quote(" ".join(text.split()))


def _language(question: Question) -> str:
    return "de" if "de" in question.languages and "en" not in question.languages else "en"
