"""Best-sentence reranking: which passages are looked at, and what makes one better."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.chunk_sentences import chunk_sentences
from core.domain.search import Passage, RetrievalScores
from core.sentence_vectors import pack
from query.retrieval.questions import analyse
from query.retrieval.reranking import Reranked, ScoredSentence, rerank
from query.retrieval.search import Retrieved
from tests.passages import make_chunk, make_passage

QUESTION = "How often are the pumps tested?"
ASKED = (1.0, 0.0)


def passage(
    text: str, point_id: str, cosines: Sequence[float], *, fused: float = 0.5, dense: float = 0.5
) -> Passage:
    """A passage whose sentences have these cosines with the question's vector."""
    chunk = make_chunk(text)
    pieces = chunk_sentences(chunk)
    vectors = [(cosine, (1 - cosine**2) ** 0.5) for cosine in cosines]
    packed = pack([(piece.start, piece.end) for piece in pieces], vectors)
    return replace(
        make_passage(chunk, point_id),
        sentences=packed,
        scores=RetrievalScores(dense=dense, fused=fused),
    )


def reranked(
    passages: Sequence[Passage],
    *,
    num_passages: int = 12,
    question: str = QUESTION,
    vector: tuple[float, ...] = ASKED,
) -> Reranked:
    ordered = tuple(sorted(passages, key=lambda p: -p.scores.fused))
    retrieved = Retrieved(analyse(question), vector, vector, ordered, {}, 1)
    (found,) = rerank([retrieved], num_passages=num_passages)
    return found


def order(found: Reranked) -> list[str]:
    return [item.point_id for item in found.passages]


def test_the_passage_with_the_better_sentence_comes_first() -> None:
    found = reranked(
        [
            passage("Valves are red. Doors are blue.", "a", [0.1, 0.1]),
            passage("Doors are green. Every year a check is made.", "b", [0.1, 0.8]),
        ]
    )
    assert order(found) == ["b", "a"]
    assert found.sentences[0].sentence.text == "Every year a check is made."
    assert found.sentences[0].cosine == pytest.approx(0.8, abs=0.01)
    assert all(item.scores.rerank is not None for item in found.passages)
    assert found.sentences[0].sentence.passage is found.passages[0]


def test_evidence_far_down_the_fused_order_is_looked_at() -> None:
    crowd = [
        passage(f"Pump {i} is tested.", f"a{i:02}", [0.3], fused=0.9 - i / 100) for i in range(30)
    ]
    hidden = passage("Every spring we check them all.", "z", [0.95], fused=0.01, dense=0.01)
    found = reranked([*crowd, hidden], num_passages=5)
    assert hidden.point_id in {s.sentence.passage.point_id for s in found.sentences}
    assert order(found).index("z") < 10
    assert sorted(order(found)) == sorted(item.point_id for item in [*crowd, hidden])


def test_no_passages_to_look_at_keeps_the_fused_order() -> None:
    passages = [passage("Pumps.", "a", [0.1], fused=0.9), passage("Pumps.", "b", [0.9], fused=0.1)]
    found = reranked(passages, num_passages=0)
    assert (order(found), found.sentences) == (["a", "b"], ())
    assert found.passages[0].scores.rerank is None


def test_without_a_question_vector_words_decide() -> None:
    found = reranked(
        [
            passage("Valves are painted red.", "a", [0.9]),
            passage("The pumps are tested yearly.", "b", [0.1]),
        ],
        vector=(),
    )
    assert order(found) == ["b", "a"]
    assert {item.cosine for item in found.sentences} == {None}


def test_nothing_found_is_nothing() -> None:
    found = reranked([])
    assert (found.passages, found.sentences) == ((), ())


def test_ties_are_broken_by_id_and_place() -> None:
    twins = [passage("Same words. Same words.", name, [0.5, 0.5]) for name in ("b", "a")]
    first, second = reranked(twins), reranked(list(reversed(twins)))
    assert order(first) == order(second) == ["a", "b"]
    assert [(s.sentence.passage.point_id, s.sentence.ordinal) for s in first.sentences] == [
        (s.sentence.passage.point_id, s.sentence.ordinal) for s in second.sentences
    ]


BASE = ScoredSentence(
    sentence=reranked([passage("Pumps.", "a", [0.5])]).sentences[0].sentence,
    lexical=0.5,
    coverage=0.5,
    fused=0.5,
    dense=0.5,
    kind=None,
    cosine=0.5,
)


@pytest.mark.parametrize(
    "better",
    [
        replace(BASE, cosine=0.6),
        replace(BASE, coverage=0.6),
        replace(BASE, lexical=0.6),
        replace(BASE, fused=0.6),
        replace(BASE, kind=True),
    ],
)
def test_everything_that_speaks_for_a_sentence_counts(better: ScoredSentence) -> None:
    assert better.answer_score > BASE.answer_score
    assert replace(BASE, kind=False).answer_score < BASE.answer_score


def test_a_heading_counts_as_words_of_its_sentences() -> None:
    headed = make_passage(make_chunk("Every spring.", headings=("Testing of pumps",)), "a")
    bare = make_passage(make_chunk("Every spring.", headings=("Canteen",)), "b")
    found = reranked([headed, bare])
    by_point = {item.sentence.passage.point_id: item for item in found.sentences}
    assert by_point["a"].coverage > by_point["b"].coverage == 0.0
