"""Sentence pairs that try the verifier: `verification_pairs.jsonl`, written by hand.

Each line is one sentence with its quotes and whether they support it. They come in twos: a sentence
that takes nearly all words of its quote and says something else, and one that says the same in
another form, so that being strict is not free.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from core.lexical.analysis import index_terms

PAIRS = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """`kind`: negation, number, date, name or opposite."""

    kind: str
    language: str
    quotes: tuple[str, ...]
    sentence: str
    is_supported: bool


def read_pairs(path: Path = PAIRS) -> list[LabelledSentence]:
    with path.open(encoding="utf-8") as lines:
        return [_read(json.loads(line)) for line in lines]


def _read(data: dict[str, object]) -> LabelledSentence:
    quotes = data["quotes"]
    assert isinstance(quotes, list)
    return LabelledSentence(
        str(data["kind"]),
        str(data["language"]),
        tuple(map(str, quotes)),
        str(data["sentence"]),
        bool(data["is_supported"]),
    )


def lexical_overlap(sentence: str, quotes: tuple[str, ...], language: str) -> float:
    """The baseline: the share of the sentence's index terms, numbers included, that the quotes
    have."""
    wanted = set(index_terms(sentence, language))
    available = {term for quote in quotes for term in index_terms(quote, language)}
    return len(wanted & available) / len(wanted) if wanted else 1.0
