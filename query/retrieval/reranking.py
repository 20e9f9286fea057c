"""Best-sentence reranking: a passage is as good as the sentence in it that answers best.

Every sentence was embedded when its chunk was indexed (ADR 0006), so each candidate's sentences are
compared with the question without asking the embedder again. The best passages by fusion, by either
leg and by their best sentence are then looked at more closely: words (rank_bm25's Okapi over their
sentences, which suits a collection this small), headings, and the kind of thing that is asked for.
A cross-encoder would take the place of `rerank` with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rank_bm25 import BM25Okapi

from core.domain.search import Passage
from core.lexical.analysis import index_terms, word_terms
from core.sentence_vectors import cosines as sentence_cosines
from query.retrieval.answer_kinds import holds_kind
from query.retrieval.coverage import WordWeights, terms_of, weigh
from query.retrieval.fusion import dbsf
from query.retrieval.questions import Question
from query.retrieval.search import Retrieved
from query.retrieval.sentences import Sentence, sentences_of

# What makes a sentence answer. Chosen on xquad, chunking_eval and paraphrases of our own
# (docs/answers.md has the figures): questions of public sets were written with the text in view,
# and people ask in other words.
COSINE_WEIGHT = 1.0
COVERAGE_WEIGHT = 0.2
LEXICAL_WEIGHT = 0.2
FUSED_WEIGHT = 0.4
DENSE_WEIGHT = 0.2
KIND_WEIGHT = 0.1
# The share of the best sentence in a passage's rerank score; the rest is its fused score.
SENTENCE_SHARE = 0.6
_FIRST_OF_A_LEG = 5


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """What speaks for a sentence.

    `lexical`: Okapi BM25 over the sentences, divided by the best one's. `coverage`: weighted share
    of the question's words in the sentence, its heading and title. `fused`, `dense`: its passage's
    scores, divided by the best passage's. All 0 to 1. `kind`: whether it holds what the question
    asks for (a number, a name), None where that says nothing. `cosine`: of the embedder, None where
    the question has no vector; `focus_cosine`: the same for the question without its names.
    """

    sentence: Sentence
    lexical: float
    coverage: float
    fused: float
    dense: float
    kind: bool | None
    cosine: float | None = None
    focus_cosine: float | None = None

    @property
    def sentence_score(self) -> float:
        """How well this sentence seems to answer, by itself."""
        kind = 0.0 if self.kind is None else (KIND_WEIGHT if self.kind else -KIND_WEIGHT)
        return (
            COSINE_WEIGHT * (-1.0 if self.cosine is None else self.cosine)
            + COVERAGE_WEIGHT * self.coverage
            + LEXICAL_WEIGHT * self.lexical
            + kind
        )

    @property
    def answer_score(self) -> float:
        """The same, for standing in that passage; sentences without a cosine come last."""
        return self.sentence_score + FUSED_WEIGHT * self.fused + DENSE_WEIGHT * self.dense


@dataclass(frozen=True, slots=True)
class Reranked:
    """`passages` in final order: the reranked ones first, then the others as they were fused.
    `sentences` of the reranked passages, best first by `answer_score`."""

    retrieved: Retrieved
    passages: tuple[Passage, ...]
    sentences: tuple[ScoredSentence, ...]
    weights: WordWeights


def rerank(batches: Sequence[Retrieved], *, num_passages: int) -> list[Reranked]:
    """Rerank the passages of each question that may hold its answer.

    Args:
        num_passages: how many of the best by fusion, and of the best by their best sentence, are
            looked at closely. With 0 there are no sentences, and the order stays as it was fused.
    """
    return [_rerank_one(retrieved, num_passages) for retrieved in batches]


def _rerank_one(retrieved: Retrieved, num_passages: int) -> Reranked:
    weights = weigh(retrieved.question, retrieved.passages)
    cosines = {p.point_id: _cosines(p, retrieved.vector) for p in retrieved.passages}
    head = _head(retrieved.passages, cosines, num_passages) if num_passages else ()
    scored = _score(retrieved, head, cosines, weights)
    best: dict[str, float] = {}
    for item in scored:
        point = item.sentence.passage.point_id
        best[point] = max(best.get(point, item.sentence_score), item.sentence_score)
    blended = _blend(head, best)
    placed = {passage.point_id: passage for passage in blended}
    others = (p for p in retrieved.passages if p.point_id not in placed)
    return Reranked(
        retrieved,
        (*blended, *others),
        tuple(_placed(item, placed) for item in sorted(scored, key=_order)),
        weights,
    )


def _score(
    retrieved: Retrieved,
    head: Sequence[Passage],
    cosines: Mapping[str, Mapping[int, float]],
    weights: WordWeights,
) -> list[ScoredSentence]:
    question = retrieved.question
    best_fused = max((passage.scores.fused for passage in head), default=0.0)
    best_dense = max((passage.scores.dense or 0.0 for passage in head), default=0.0)
    sentences = [sentence for passage in head for sentence in sentences_of(passage)]
    focus = {p.point_id: _cosines(p, retrieved.focus_vector) for p in head}
    return [
        ScoredSentence(
            sentence,
            lexical,
            weights.coverage(_terms(sentence), sentence.passage.chunk.language),
            _share_of(sentence.passage.scores.fused, best_fused),
            _share_of(sentence.passage.scores.dense, best_dense),
            holds_kind(question.kind, sentence.text, question.text),
            cosines[sentence.passage.point_id].get(sentence.start),
            focus[sentence.passage.point_id].get(sentence.start),
        )
        for sentence, lexical in zip(sentences, _okapi(question, sentences), strict=True)
    ]


def _share_of(value: float | None, best: float) -> float:
    return max(0.0, value / best) if value is not None and best > 0 else 0.0


def _cosines(passage: Passage, vector: Sequence[float]) -> dict[int, float]:
    """The cosine of each sentence of a passage, by where it starts in the chunk."""
    if not vector:
        return {}
    starts = (start for start, _ in passage.sentences.spans)
    return dict(zip(starts, sentence_cosines(passage.sentences, vector), strict=True))


def _head(
    passages: Sequence[Passage], cosines: Mapping[str, Mapping[int, float]], limit: int
) -> tuple[Passage, ...]:
    """The passages to look at closely, in fused order: the best by fusion, the first few of each
    leg, and the best by their best sentence.

    Fusion asks both legs; evidence in other words is known to the dense leg alone, a part number to
    the lexical one, and one sentence of a long chunk to neither.
    """
    chosen = {passage.point_id for passage in passages[:limit]}
    for rank in ("dense_rank", "lexical_rank"):
        chosen |= {
            passage.point_id
            for passage in passages
            if (getattr(passage.scores, rank) or _FIRST_OF_A_LEG + 1) <= _FIRST_OF_A_LEG
        }
    by_sentence = sorted(
        (point for point, found in cosines.items() if found),
        key=lambda point: (-max(cosines[point].values()), point),
    )
    chosen.update(by_sentence[:limit])
    return tuple(passage for passage in passages if passage.point_id in chosen)


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


def _blend(passages: Sequence[Passage], best: Mapping[str, float]) -> list[Passage]:
    """Final order by the fused score and the best sentence's, both spread alike (DBSF).

    A passage without sentences counts as the worst that has some.
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
