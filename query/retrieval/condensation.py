"""Follow-ups: a question that leans on the turns before it becomes one that stands alone.

Lexical and cheap, no model. Each turn is judged by itself: a question that stands alone is searched
as it is, whatever was said before, since history that it does not need hides what it asks for
(measured on MTRAG, docs/answers.md). One that leans (a pronoun without its noun, "and in winter?",
a bare "why?") takes along the content words of the turn before, never all of the conversation. They
stand after the question, which stays what counts most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from core.domain.generation import ChatMessage
from query.retrieval.questions import analyse

MAX_TURNS = 4  # further back than this nothing is carried along
_MAX_CARRIED_WORDS = 12
_FEW_WORDS = 2

_PRONOUN = regex.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|he|him|his|she|her|hers|those|these|ones?"
    r"|(?:this|that)(?=\s*(?:[?.!,]|$|is\b|was\b|does\b|did\b|will\b|would\b|can\b|could\b|has\b"
    r"|mean\b|means\b|work\b|works\b|happen\b|happens\b|for\b|in\b|with\b|to\b|and\b|or\b))"
    r"|(?:the|any|each|which)\s+(?:one|ones|former|latter|same|other|others)"
    r"|(?:over|from|out|up|in|of|about)\s+there"
    r"|sie|ihn|ihm|ihnen|ihre[mnrs]?|dies\w*|jene\w*|dort|davon|dafür|dabei|daran|damit|dazu)\b",
    regex.IGNORECASE,
)
_EXPLETIVE = regex.compile(
    r"\b(?:(?:is|was|does|will|would|can|has)\s+it\s+(?:\w+\s+){0,2}?(?:to|that|possible|true|normal"
    r"|legal|safe|important|necessary|better|take|cost|mean|rain)\b|it\s+is\s+\w+\s+(?:to|that)\b"
    r"|what\s+time\s+is\s+it)",
    regex.IGNORECASE,
)
_OPENER = regex.compile(
    r"^\W*(?:and|or|but|so|then|also|else|what\s+about|how\s+about|what\s+if|what\s+else|why\s+not"
    r"|any\s+other|anything\s+else|and\s+if|und|oder|aber|auch|was\s+ist\s+mit|wie\s+ist\s+es\s+mit"
    r"|wie\s+sieht\s+es\s+mit|sonst)\b",
    regex.IGNORECASE,
)
_REPEATED_ASKING = regex.compile(
    r"^\W*(?:why|when|where|who|how|how\s+(?:much|many|long|often|so|come)|which|what|really|sure"
    r"|warum|wann|wo|wer|wie|wieso|was|wirklich)\W*$",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Condensed:
    """`query` stands alone; it is the question itself unless `is_follow_up`."""

    query: str
    is_follow_up: bool

    @property
    def standalone(self) -> str:
        """The query of a follow-up; empty for a question that stands alone."""
        return self.query if self.is_follow_up else ""


def condense(question: str, history: Sequence[ChatMessage]) -> Condensed:
    """What to search for.

    Args:
        question: the last turn.
        history: earlier turns, oldest first; only what the user said is read, since an answer may
            be wrong and a question can only be unclear.
    """
    asked = [message.content for message in history if message.role == "user"][-MAX_TURNS:]
    standalone = ""
    for earlier in asked:
        standalone = _stand_alone(earlier, standalone)
    query = _stand_alone(question, standalone)
    return Condensed(query, is_follow_up=query != " ".join(question.split()))


def leans(question: str) -> bool:
    """Whether a question does not say by itself what it is about."""
    text = " ".join(question.split())
    if not text:
        return False
    if _REPEATED_ASKING.match(text) or _OPENER.match(text):
        return True
    analysed = analyse(text)
    if _PRONOUN.search(_EXPLETIVE.sub(" ", text)):
        return not analysed.names or len(analysed.words) <= _FEW_WORDS
    return not analysed.words


def _stand_alone(question: str, before: str) -> str:
    text = " ".join(question.split())
    if not before or not leans(text):
        return text
    known = {word.text for word in analyse(text).words}
    carried = [word.text for word in analyse(before).words if word.text not in known]
    return " ".join((text, *carried[:_MAX_CARRIED_WORDS]))
