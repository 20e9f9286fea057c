"""Best-sentence reranking: a passage is as good as the sentence in it that answers best.

The embedder reads sentences of the top passages, in one call for all questions of a request, and
at most `num_sentences` of them: half are chosen by their words (rank_bm25's Okapi over the
sentences, which suits a collection this small), and half are the sentences of the passages that are
densest, since evidence in other words shares none with the question. A cross-encoder would take the
place of `rerank` with the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rank_bm25 import BM25Okapi

from core.domain.search import Passage
from core.lexical.analysis import index_terms, word_terms
from core.ports.models import Embedder
from query.retrieval.answer_kinds import holds_kind
from query.retrieval.coverage import WordWeights, terms_of, weigh
from query.retrieval.fusion import dbsf
from query.retrieval.questions import Question
from query.retrieval.search import Retrieved
from query.retrieval.sentences import Sentence, sentences_of

# What makes a sentence answer. Chosen on xquad and chunking_eval (docs/answers.md has the figures),
# with words at less than was best there: those questions were written with the text in view, and
# people ask in other words.
COSINE_WEIGHT = 1.0
COVERAGE_WEIGHT = 0.3
LEXICAL_WEIGHT = 0.2
FUSED_WEIGHT = 0.8
KIND_WEIGHT = 0.1
# The share of the best sentence in a passage's rerank score; the rest is its fused score.
SENTENCE_SHARE = 0.5
_CHOSEN_BY_WORDS = 0.5


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """What speaks for a sentence.

    `lexical`: Okapi BM25 over the sentences, divided by the best one's. `coverage`: weighted share
    of the question's words in the sentence, its heading and title. `fused`: its passage's fused
    score divided by the best passage's. All 0 to 1. `kind`: whether it holds what the question asks
    for (a number, a name), None where that says nothing. `cosine`: of the embedder, None where the
    sentence was not embedded; `focus_cosine`: the same for the question without its names.
    """

    sentence: Sentence
    lexical: float
    coverage: float
    fused: float
    kind: bool | None
    cosine: float | None = None
    focus_cosine: float | None = None

    @property
    def answer_score(self) -> float:
        """How well this sentence seems to answer; sentences that were not embedded come last."""
        kind = 0.0 if self.kind is None else (KIND_WEIGHT if self.kind else -KIND_WEIGHT)
        return (
            COSINE_WEIGHT * (-1.0 if self.cosine is None else self.cosine)
            + COVERAGE_WEIGHT * self.coverage
            + LEXICAL_WEIGHT * self.lexical
            + FUSED_WEIGHT * self.fused
            + kind
        )


@dataclass(frozen=True, slots=True)
class Reranked:
    """`passages` in final order: the reranked ones first, then the others as they were fused.
    `sentences` of the reranked passages, best first by `answer_score`."""

    retrieved: Retrieved
    passages: tuple[Passage, ...]
    sentences: tuple[ScoredSentence, ...]
    weights: WordWeights


def rerank(
    batches: Sequence[Retrieved], embedder: Embedder, *, num_passages: int, num_sentences: int
) -> list[Reranked]:
    """Rerank the first `num_passages` passages of each question.

    Args:
        batches: what each question (or part of one) found.
        num_sentences: how many sentences are embedded in all, shared by the questions.

    Raises ModelsUnavailable, Overloaded.
    """
    share = max(1, num_sentences // max(1, len(batches)))
    drafts = [_Draft.of(retrieved, num_passages) for retrieved in batches]
    picks = [frozenset(_choose(draft.scored, share)) for draft in drafts]
    texts = {
        embedded_text(draft.scored[position].sentence): None
        for draft, chosen in zip(drafts, picks, strict=True)
        for position in sorted(chosen)
    }
    # A person waits for these, unlike for the passages of an ingest.
    vectors = embedder.embed_passages(list(texts), is_waited_for=True) if texts else []
    by_text = dict(zip(texts, vectors, strict=True))
    return [draft.finish(chosen, by_text) for draft, chosen in zip(drafts, picks, strict=True)]


def embedded_text(sentence: Sentence) -> str:
    """What the embedder reads for a sentence: its heading says what "the limit" is a limit of."""
    return f"{sentence.heading}: {sentence.text}" if sentence.heading else sentence.text


@dataclass(frozen=True, slots=True)
class _Draft:
    """One question's passages and sentences before the embedder has seen any."""

    retrieved: Retrieved
    num_passages: int
    weights: WordWeights
    scored: list[ScoredSentence]

    @classmethod
    def of(cls, retrieved: Retrieved, num_passages: int) -> _Draft:
        question = retrieved.question
        weights = weigh(question, retrieved.passages)
        head = retrieved.passages[:num_passages]
        best_fused = max((passage.scores.fused for passage in head), default=0.0)
        sentences = [sentence for passage in head for sentence in sentences_of(passage)]
        scored = [
            ScoredSentence(
                sentence,
                lexical,
                weights.coverage(_terms(sentence), sentence.passage.chunk.language),
                sentence.passage.scores.fused / best_fused if best_fused > 0 else 0.0,
                holds_kind(question.kind, sentence.text, question.text),
            )
            for sentence, lexical in zip(sentences, _okapi(question, sentences), strict=True)
        ]
        return cls(retrieved, num_passages, weights, scored)

    def finish(self, picks: Collection[int], vectors: Mapping[str, Sequence[float]]) -> Reranked:
        """`picks` are the positions in `scored` that were embedded, `vectors` theirs by text."""
        scored = [
            self._with_cosines(item, vectors) if position in picks else item
            for position, item in enumerate(self.scored)
        ]
        best: dict[str, float] = {}
        for item in scored:
            point = item.sentence.passage.point_id
            if item.cosine is not None:
                best[point] = max(best.get(point, -1.0), item.answer_score)
        passages = self.retrieved.passages
        head = _blend(passages[: self.num_passages], best)
        placed = {passage.point_id: passage for passage in head}
        scored.sort(key=_order)
        return Reranked(
            self.retrieved,
            (*head, *passages[self.num_passages :]),
            tuple(_placed(item, placed) for item in scored),
            self.weights,
        )

    def _with_cosines(
        self, item: ScoredSentence, vectors: Mapping[str, Sequence[float]]
    ) -> ScoredSentence:
        vector = vectors[embedded_text(item.sentence)]
        return replace(
            item,
            cosine=_dot(self.retrieved.vector, vector),
            focus_cosine=_dot(self.retrieved.focus_vector, vector),
        )


def _terms(sentence: Sentence) -> frozenset[str]:
    chunk = sentence.passage.chunk
    return terms_of((sentence.text, sentence.heading, sentence.passage.title), chunk.language)


def _okapi(question: Question, sentences: Sequence[Sentence]) -> list[float]:
    """rank_bm25's Okapi of each sentence, divided by the best one's; 0 where nothing matches."""
    languages = {sentence.passage.chunk.language for sentence in sentences}
    wanted = {
        term
        for word in question.words
        for language in languages
        for term in word_terms(word.text, language)
    }
    tokens = [
        index_terms(f"{sentence.heading}\n{sentence.text}", sentence.passage.chunk.language)
        for sentence in sentences
    ]
    if not wanted or not any(tokens):
        return [0.0] * len(sentences)
    found = [max(0.0, float(value)) for value in BM25Okapi(tokens).get_scores(sorted(wanted))]
    best = max(found)
    return [value / best if best > 0 else 0.0 for value in found]


def _choose(scored: Sequence[ScoredSentence], limit: int) -> list[int]:
    """Positions of the sentences to embed: by words, then those of the densest passages."""
    by_words = sorted(
        range(len(scored)), key=lambda i: (-(scored[i].lexical + scored[i].coverage), i)
    )
    by_density = sorted(range(len(scored)), key=lambda i: (_distance(scored[i]), i))
    picks = dict.fromkeys(by_words[: max(1, round(limit * _CHOSEN_BY_WORDS))])
    for position in by_density:
        if len(picks) >= limit:
            break
        picks.setdefault(position)
    return list(picks)[:limit]


def _distance(scored: ScoredSentence) -> float:
    dense = scored.sentence.passage.scores.dense
    return 2.0 if dense is None else 1.0 - dense


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _blend(passages: Sequence[Passage], best: Mapping[str, float]) -> list[Passage]:
    """Final order by the fused score and the best sentence's, both spread alike (DBSF).

    A passage of which no sentence was embedded counts as the worst that was.
    """
    floor = min(best.values(), default=0.0)
    fused = dbsf([passage.scores.fused for passage in passages])
    answers = dbsf([best.get(passage.point_id, floor) for passage in passages])
    reranked = [
        replace(
            passage,
            scores=replace(
                passage.scores,
                rerank=(1 - SENTENCE_SHARE) * of_fusion + SENTENCE_SHARE * of_sentence,
            ),
        )
        for passage, of_fusion, of_sentence in zip(passages, fused, answers, strict=True)
    ]
    return sorted(reranked, key=lambda p: (-(p.scores.rerank or 0.0), -p.scores.fused, p.point_id))


def _placed(item: ScoredSentence, passages: Mapping[str, Passage]) -> ScoredSentence:
    """The sentence with its passage as it was reranked."""
    passage = passages[item.sentence.passage.point_id]
    return replace(item, sentence=replace(item.sentence, passage=passage))


def _order(item: ScoredSentence) -> tuple[float, str, int]:
    return (-item.answer_score, item.sentence.passage.point_id, item.sentence.ordinal)
