"""The signals that decide `not_in_documents`, and which way each one points."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.chunk_sentences import chunk_sentences
from core.domain.pages import Chunk
from core.domain.search import Passage, RetrievalScores
from core.sentence_vectors import pack
from query.answers.answerability import NAMES, Signals, is_answerable, measure, probability
from query.answers.calibration import COEFFICIENTS, INTERCEPTS, THRESHOLDS
from query.answers.evidence import Evidence, choose_evidence
from query.retrieval.questions import analyse
from query.retrieval.reranking import Reranked, rerank
from query.retrieval.search import Retrieved
from tests.passages import make_chunk, make_passage

TEXT = "Hall 7 is cold. The PX-200 weighs 45 kg. It is blue. Doors are green."
STRONG = Signals(0.85, 0.75, 0.8, 0.4, 1.0, 0.0, 0.0)
WEAK = Signals(0.15, 0.1, 0.15, 0.03, 0.0, 1.0, 1.0)


def passage(chunk: Chunk, point_id: str, cosines: Sequence[float], *, dense: float) -> Passage:
    pieces = chunk_sentences(chunk)
    vectors = [(cosine, (1 - cosine**2) ** 0.5) for cosine in cosines]
    return replace(
        make_passage(chunk, point_id),
        sentences=pack([(piece.start, piece.end) for piece in pieces], vectors),
        scores=RetrievalScores(dense=dense, fused=dense),
    )


def found(question: str, *passages: Passage) -> Reranked:
    retrieved = Retrieved(analyse(question), (1.0, 0.0), (1.0, 0.0), passages, {}, 1)
    (reranked,) = rerank([retrieved], num_passages=12)
    return reranked


def signals(question: str, *passages: Passage) -> Signals:
    reranked = found(question, *passages)
    return measure(reranked, best(reranked))


def best(reranked: Reranked) -> Evidence:
    return choose_evidence(reranked, 1)[0]


def manual(*, language: str = "en", heading: str = "Data") -> Passage:
    chunk = make_chunk(TEXT, headings=(heading,), language=language)
    return passage(chunk, "p1", [0.1, 0.8, 0.2, 0.3], dense=0.7)


def test_cosines_are_the_best_sentences() -> None:
    others = [
        passage(make_chunk(f"Note {i}."), f"q{i}", [0.1], dense=0.5 - i / 100) for i in range(10)
    ]
    measured = signals("How much does the PX-200 weigh?", manual(), *others)
    assert measured.sentence_cosine == pytest.approx(0.8, abs=0.01)
    assert measured.focus_cosine == pytest.approx(0.8, abs=0.01)
    assert measured.dense_top == 0.7
    # ten others, and ten more that a larger collection would have
    rest = sum(0.5 - i / 100 for i in range(10)) + 10 * 0.1
    assert measured.dense_gap == pytest.approx(0.7 - rest / 20)


@pytest.mark.parametrize(
    ("question", "name_missing"),
    [
        ("How much does the PX-200 weigh?", 0.0),
        ("How much does the PX-300 weigh?", pytest.approx(2 / 3)),
        ("How much does the ACME pump weigh?", 1.0),
        ("How much does the pump weigh?", 0.0),
    ],
)
def test_a_name_that_the_passage_lacks(question: str, name_missing: float) -> None:
    assert signals(question, manual()).name_missing == name_missing


@pytest.mark.parametrize(
    ("question", "kind_missing"),
    [
        ("How much does the PX-200 weigh?", 0.0),
        ("How much does the PX-200 cost?", 1.0),
        ("Is the PX-200 blue?", 0.0),
    ],
)
def test_a_kind_of_answer_that_the_evidence_lacks(question: str, kind_missing: float) -> None:
    assert signals(question, manual()).kind_missing == kind_missing


def test_words_count_in_the_evidence_its_neighbours_and_its_headings() -> None:
    assert signals("cold weighs blue", manual()).word_coverage == 1.0
    assert signals("green doors", manual()).word_coverage == 0.0
    assert signals("green doors", manual(heading="Green doors")).word_coverage == 1.0


@pytest.mark.parametrize("calibration", sorted(COEFFICIENTS))
def test_strong_evidence_answers_and_weak_evidence_does_not(calibration: str) -> None:
    assert probability(STRONG, calibration) >= THRESHOLDS[calibration]
    assert probability(WEAK, calibration) < THRESHOLDS[calibration]


@pytest.mark.parametrize("calibration", sorted(COEFFICIENTS))
def test_missing_names_and_kinds_never_speak_for_an_answer(calibration: str) -> None:
    middle = Signals(0.5, 0.4, 0.5, 0.2, 0.5, 0.0, 0.0)
    for name in ("name_missing", "kind_missing"):
        assert probability(replace(middle, **{name: 1.0}), calibration) < probability(
            middle, calibration
        )
    closer = replace(middle, sentence_cosine=0.6, focus_cosine=0.5, dense_top=0.6, dense_gap=0.3)
    assert probability(closer, calibration) > probability(middle, calibration)


def test_the_committed_numbers_are_complete() -> None:
    assert set(COEFFICIENTS) == set(INTERCEPTS) == set(THRESHOLDS) == {"en", "other"}
    for coefficients in COEFFICIENTS.values():
        assert coefficients
        assert set(coefficients) <= set(NAMES)
    assert all(0 < threshold < 1 for threshold in THRESHOLDS.values())


def test_nothing_found_is_no_answer() -> None:
    assert is_answerable(found("What is it?"), []) is False


def test_the_language_of_the_evidence_picks_the_numbers() -> None:
    question = "How much does the PX-200 weigh?"
    for language, calibration in (("en", "en"), ("de", "other"), ("und", "other")):
        reranked = found(question, manual(language=language))
        evidence = best(reranked)
        expected = probability(measure(reranked, evidence), calibration) >= THRESHOLDS[calibration]
        assert is_answerable(reranked, [evidence]) is expected
