"""Splitting a question that asks for several things into its parts.

Only where it is plain: several sentences with a question mark, or "and" (German "und", "sowie")
before another question word. A part that leans on the others ("and when does it end?") is searched
with the whole question, and shown as it was asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from query.retrieval.questions import analyse

MAX_PARTS = 3

_ASKING = (
    r"(?:who|whom|whose|what|when|where|which|why|how|wer|wen|wem|wessen|was|wann|wo|wohin|woher|"
    r"welche[mnrs]?|warum|weshalb|wieso|wie|wieviele?)"
)
_PREPOSITION = (
    r"(?:(?:at|by|for|from|in|of|on|since|to|under|until|with|within|ab|an|auf|aus|bei|bis|durch|"
    r"für|in|mit|nach|seit|unter|von|vor|zu)\s+)?"
)
_JOINT = regex.compile(
    rf"(?:\?\s+(?:(?:and|und)\s+)?|\s*[,;]?\s+(?:and|und|sowie|as well as)\s+)"
    rf"(?={_PREPOSITION}{_ASKING}\b)",
    regex.IGNORECASE,
)
_SENTENCES = regex.compile(r"(?<=\?)\s+")
_LEANING = regex.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|there|then|one|ones"
    r"|es|sie|er|ihn|ihm|ihr|ihnen|dies\w*|jene\w*|dort|dann|davon|dafür|dabei|daran)\b",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """`text` as it was asked, `query` as it is searched."""

    text: str
    query: str


def split_question(question: str) -> list[Part]:
    """The parts of a question in order; the question itself unless it is plainly several.

    At most `MAX_PARTS`: a question of more is left whole, since its parts would be noise.
    """
    whole = [Part(question, question)]
    texts = [
        piece.strip(" ,;")
        for sentence in _SENTENCES.split(question.strip())
        for piece in _JOINT.split(sentence)
        if piece.strip(" ,;?")
    ]
    if not 1 < len(texts) <= MAX_PARTS or not all(_asks(text) for text in texts):
        return whole
    analysed = [analyse(text) for text in texts]
    if not analysed[0].words:  # "how often and by whom is it done": one question after all
        return whole
    return [
        Part(text, question if position and _leans(text, len(part.words)) else text)
        for position, (text, part) in enumerate(zip(texts, analysed, strict=True))
    ]


def _asks(text: str) -> bool:
    return regex.search(rf"\b{_ASKING}\b", text, regex.IGNORECASE) is not None or text.endswith("?")


def _leans(text: str, num_words: int) -> bool:
    return num_words < 2 or _LEANING.search(text) is not None
