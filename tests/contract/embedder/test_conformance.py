"""What every implementation of the port Embedder does."""

import math

import pytest

from core.errors import InvalidInput
from core.ports.models import Embedder


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_have_unit_length_and_the_told_dimension(embedder: Embedder) -> None:
    vectors = [*embedder.embed_questions(["why?"]), *embedder.embed_passages(["because", "so"])]
    assert len(vectors) == 3
    for vector in vectors:
        assert len(vector) == embedder.info().dimension
        assert math.sqrt(sum(value * value for value in vector)) == pytest.approx(1.0, abs=1e-4)


def test_order_is_kept_and_company_does_not_matter(embedder: Embedder) -> None:
    texts = ["short", "a somewhat longer text about pumps", "x", "notice period of three months"]
    together = embedder.embed_passages(texts)
    alone = [embedder.embed_passages([text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert cosine(one, other) == pytest.approx(1.0, abs=1e-4)


def test_likeness_is_seen(embedder: Embedder) -> None:
    (question,) = embedder.embed_questions(["the notice period of the contract"])
    near, far = embedder.embed_passages(
        ["the contract has a notice period", "bananas ripen quickly"]
    )
    assert cosine(question, near) > cosine(question, far)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_questions([]) == []
    assert embedder.embed_passages([]) == []


def test_many_texts_are_fine(embedder: Embedder) -> None:
    texts = [f"passage number {n}" for n in range(70)]
    vectors = embedder.embed_passages(texts)
    assert len(vectors) == 70
    assert cosine(vectors[69], embedder.embed_passages([texts[69]])[0]) > 0.999


@pytest.mark.parametrize("text", ["", " ", "\n", "…", "😀", "漢字", "a\x00b"], ids=repr)
def test_odd_texts_have_vectors(embedder: Embedder, text: str) -> None:
    (vector,) = embedder.embed_passages([text])
    assert all(math.isfinite(value) for value in vector)


def test_a_text_over_the_limit_is_refused_never_cut(embedder: Embedder) -> None:
    limit = embedder.info().max_tokens
    fits = "word " * (limit - 2)
    assert len(embedder.embed_passages([fits])) == 1
    with pytest.raises(InvalidInput):
        embedder.embed_passages(["fine", fits + "word"])
    with pytest.raises(InvalidInput):
        embedder.embed_questions([fits + "word"])


def test_info_stays_the_same(embedder: Embedder) -> None:
    info = embedder.info()
    assert info == embedder.info()
    assert info.model_id
    assert info.fingerprint
    assert info.max_tokens > 2
