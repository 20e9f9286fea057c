"""The suite: 100 questions with their evidence, and 100 sentences with their quotes.

Both are written by hand from documents that do not exist. The questions try a generator; the
sentences try the verifier, which is what the generator is measured with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from query.answers.writing.given import GivenPassage
from query.answers.writing.prompting import PREFIX
from query.gate.thresholds import THRESHOLDS

# Raised by hand when the same answer would be judged otherwise.
JUDGE_VERSION = 1
_FOLDER = Path(__file__).parent
_QUESTIONS = _FOLDER / "questions.jsonl"
_SENTENCES = _FOLDER / "sentences.jsonl"


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """
    kind: number, date, name, fact, negation, two (needs two passages) or unanswerable.
    evidence: (title, sentence), numbered from 1 in the prompt.
    answering: numbers of the evidence that answers; none for an unanswerable question.
    must: of each group of spellings the answer has one. must_not: what its first sentence does not
    have: other values that stand in the evidence.
    """

    id: str
    kind: str
    language: str
    question: str
    evidence: tuple[tuple[str, str], ...]
    answering: tuple[int, ...]
    must: tuple[tuple[str, ...], ...]
    must_not: tuple[str, ...]

    @property
    def is_answerable(self) -> bool:
        return bool(self.answering)

    @property
    def given(self) -> list[GivenPassage]:
        """As the product gives them to a generator; quotes of stored pages there are none."""
        return [
            GivenPassage(number, title, text, ())
            for number, (title, text) in enumerate(self.evidence, 1)
        ]


@dataclass(frozen=True, slots=True)
class GateSentence:
    """A sentence, its quotes with their title, and whether they support it."""

    id: str
    language: str
    title: str
    quotes: tuple[str, ...]
    sentence: str
    is_supported: bool


@lru_cache(maxsize=1)
def read_questions() -> tuple[GateQuestion, ...]:
    return tuple(
        GateQuestion(
            id=row["id"],
            kind=row["kind"],
            language=row["language"],
            question=row["question"],
            evidence=tuple((item["title"], item["text"]) for item in row["evidence"]),
            answering=tuple(row["answering"]),
            must=tuple(tuple(group) for group in row["must"]),
            must_not=tuple(row["must_not"]),
        )
        for row in _rows(_QUESTIONS)
    )


@lru_cache(maxsize=1)
def read_sentences() -> tuple[GateSentence, ...]:
    return tuple(
        GateSentence(
            id=row["id"],
            language=row["language"],
            title=row["title"],
            quotes=tuple(row["quotes"]),
            sentence=row["sentence"],
            is_supported=row["is_supported"],
        )
        for row in _rows(_SENTENCES)
    )


@lru_cache(maxsize=1)
def suite_version() -> str:
    """What a verdict belongs to: the questions, the product's prompt and the thresholds. 12 hex."""
    parts = (JUDGE_VERSION, _QUESTIONS.read_bytes(), PREFIX, THRESHOLDS)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
