"""Whether what was found answers the question at all: `not_in_documents` is decided here.

No single signal is good enough (docs/answers.md has the figures), so a few are combined by a
logistic regression. Its coefficients are in `calibration.py`, written by
`python -m evals.calibrate_answerability`; they belong to one embedder. There is one set for English
and one for all other languages, which that embedder hardly speaks: there the words decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from core.domain.search import Passage
from query.answers.calibration import COEFFICIENTS, INTERCEPTS, THRESHOLDS
from query.answers.evidence import Evidence
from query.retrieval.answer_kinds import holds_kind
from query.retrieval.coverage import passage_terms, terms_of
from query.retrieval.questions import WordKind, share_found
from query.retrieval.reranking import Reranked
from query.retrieval.sentences import sentences_of

_NUM_NEXT = 20
# The cosine of texts that have nothing to do with each other: stands for the passages that a small
# collection does not have, so that the only document of one does not seem to be one of many.
_UNRELATED = 0.1


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for and against an answer, each roughly -1 to 1.

    sentence_cosine: the best in the evidence's passage. focus_cosine: the same for the question
    without its names. dense_top: the best passage's dense score; dense_gap: by how much it
    stands out from the next 20. word_coverage: weighted share of the question's plain words in the
    evidence, its neighbours and headings. name_missing: how much of a name or number of the
    question the evidence's passage lacks, of the one it lacks most. kind_missing: 1 when the
    question asks for a kind of thing (an amount, a date) that the evidence does not hold.
    """

    sentence_cosine: float
    focus_cosine: float
    dense_top: float
    dense_gap: float
    word_coverage: float
    name_missing: float
    kind_missing: float


NAMES = tuple(field.name for field in fields(Signals))


def measure(reranked: Reranked, evidence: Evidence) -> Signals:
    """The signals for the best evidence of a question."""
    retrieved = reranked.retrieved
    question = retrieved.question
    chunk = evidence.passage.chunk
    headings = (evidence.scored.sentence.heading, evidence.passage.title, *chunk.heading_path)
    window = _window(evidence)
    dense = sorted(
        (p.scores.dense for p in retrieved.passages if p.scores.dense is not None), reverse=True
    )
    rest = [*dense[1 : 1 + _NUM_NEXT], *[_UNRELATED] * _NUM_NEXT][:_NUM_NEXT]
    plain = [word for word in question.words if word.kind is WordKind.PLAIN]
    in_passage = passage_terms(evidence.passage)
    holds = holds_kind(question.kind, "\n".join((window, *headings)), question.text)
    beside = [s for s in reranked.sentences if _is_of(s.sentence.passage, evidence.passage)]
    return Signals(
        sentence_cosine=max((s.cosine for s in beside if s.cosine is not None), default=0.0),
        focus_cosine=max(
            (s.focus_cosine for s in beside if s.focus_cosine is not None), default=0.0
        ),
        dense_top=dense[0] if dense else 0.0,
        dense_gap=dense[0] - sum(rest) / len(rest) if dense else 0.0,
        word_coverage=reranked.weights.coverage_of(
            terms_of((window, *headings), chunk.language), chunk.language, plain
        ),
        name_missing=max(
            (1.0 - share_found(name, in_passage, chunk.language) for name in question.names),
            default=0.0,
        ),
        kind_missing=1.0 if holds is False else 0.0,
    )


def probability(signals: Signals, calibration: str) -> float:
    """How likely it is that the evidence answers, 0 to 1, among as many questions that have an
    answer as have none. `calibration` is the name of a set of coefficients."""
    coefficients = COEFFICIENTS[calibration]
    logit = INTERCEPTS[calibration] + sum(
        coefficients.get(name, 0.0) * value
        for name, value in zip(NAMES, astuple(signals), strict=True)
    )
    return 1.0 / (1.0 + math.exp(-logit))


def is_answerable(reranked: Reranked, evidence: Sequence[Evidence]) -> bool:
    """Whether to answer with this evidence (best first) rather than say that there is none."""
    if not evidence:
        return False
    calibration = "en" if evidence[0].passage.chunk.language == "en" else "other"
    measured = probability(measure(reranked, evidence[0]), calibration)
    return measured >= THRESHOLDS[calibration]


def _is_of(passage: Passage, other: Passage) -> bool:
    return passage.point_id == other.point_id


def _window(evidence: Evidence) -> str:
    """The evidence with the sentence before and after it."""
    text = evidence.passage.chunk.text
    neighbours = sentences_of(evidence.passage)
    before = [s.start for s in neighbours if s.end <= evidence.start]
    after = [s.end for s in neighbours if s.start >= evidence.end]
    return text[before[-1] if before else evidence.start : after[0] if after else evidence.end]
