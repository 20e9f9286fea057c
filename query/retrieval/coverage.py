"""How much of a question's words a text holds, rare words counting more.

Word frequencies come from the retrieved candidates, not from the whole index: the lexical leg has
brought in whatever holds a rare word, so a word that no candidate has is a word nobody uses here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from core.domain.search import Passage
from core.lexical.analysis import index_terms
from query.retrieval.questions import Question, QuestionWord, share_found

_NUM_CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class WordWeights:
    """Weights above 0 for each content word of a question, in its order."""

    question: Question
    weights: tuple[float, ...]

    def coverage(self, terms: Collection[str], language: str) -> float:
        """Weighted share of the question's words that the terms hold, 0 to 1; 1 for no words."""
        return self._share(terms, language, self.question.words)

    def coverage_of(
        self, terms: Collection[str], language: str, words: Sequence[QuestionWord]
    ) -> float:
        """The same over some of the question's words."""
        return self._share(terms, language, words)

    def _share(self, terms: Collection[str], language: str, words: Sequence[QuestionWord]) -> float:
        wanted = set(words)
        found = total = 0.0
        for word, weight in zip(self.question.words, self.weights, strict=True):
            if word in wanted:
                total += weight
                found += weight * share_found(word, terms, language)
        return found / total if total else 1.0


def weigh(question: Question, passages: Sequence[Passage]) -> WordWeights:
    """Inverse frequencies `ln(1 + (N - n + .5) / (n + .5))` of the question's words over the best
    candidates (at most 50). One word in as many as all candidates still weighs a little."""
    considered = passages[:_NUM_CANDIDATES]
    holders = [0.0] * len(question.words)
    for passage in considered:
        terms = passage_terms(passage)
        for position, word in enumerate(question.words):
            holders[position] += share_found(word, terms, passage.chunk.language)
    num = len(considered)
    return WordWeights(
        question, tuple(math.log1p((num - held + 0.5) / (held + 0.5)) for held in holders)
    )


def passage_terms(passage: Passage) -> frozenset[str]:
    """The terms of everything that was indexed: title, headings and text."""
    return frozenset(index_terms(passage.chunk.index_text, passage.chunk.language))


def terms_of(texts: Iterable[str], language: str) -> frozenset[str]:
    return frozenset(term for text in texts for term in index_terms(text, language))
