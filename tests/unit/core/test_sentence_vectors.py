"""Packed sentence vectors keep directions, and chunks are cut the same way everywhere."""

import random

import pytest

from core.chunk_sentences import chunk_sentences
from core.domain.pages import Chunk, SourceSpan
from core.domain.search import SentenceVectors
from core.sentence_vectors import cosines, pack


def unit(generator: random.Random, dimension: int = 384) -> list[float]:
    values = [generator.gauss(0, 1) for _ in range(dimension)]
    length = sum(value * value for value in values) ** 0.5
    return [value / length for value in values]


def make_chunk(text: str, *, is_table: bool = False, heading: str = "Limits") -> Chunk:
    span = SourceSpan(1, 0, len(text), 0, len(text))
    return Chunk(0, text, ("Manual", heading), text, (span,), "en", 10, is_table)


def test_cosines_survive_the_packing() -> None:
    generator = random.Random(5)
    question = unit(generator)
    vectors = [unit(generator) for _ in range(40)]
    spans = [(number, number + 1) for number in range(40)]
    found = cosines(pack(spans, vectors), question)
    exact = [sum(a * b for a, b in zip(vector, question, strict=True)) for vector in vectors]
    assert max(abs(a - b) for a, b in zip(found, exact, strict=True)) < 0.005
    assert cosines(pack(spans[:1], [question]), question)[0] == pytest.approx(1.0, abs=1e-3)


def test_nothing_packs_to_nothing() -> None:
    assert pack([], []) == SentenceVectors()
    assert cosines(SentenceVectors(), [1.0, 0.0]) == []


def test_mismatches_are_refused() -> None:
    with pytest.raises(ValueError, match="1 vectors for 2"):
        pack([(0, 1), (1, 2)], [[1.0, 0.0]])
    with pytest.raises(ValueError, match="another dimension"):
        cosines(pack([(0, 1)], [[1.0, 0.0]]), [1.0, 0.0, 0.0])


def test_a_vector_of_zeros_is_like_nothing() -> None:
    assert cosines(pack([(0, 1)], [[0.0, 0.0]]), [1.0, 0.0]) == [0.0]


def test_sentences_bring_their_heading() -> None:
    chunk = make_chunk("The pump stops at 6 bar. It starts at 4 bar.")
    first, second = chunk_sentences(chunk)
    assert first.text == "The pump stops at 6 bar."
    assert second.embedded_text == "Limits: It starts at 4 bar."
    assert chunk.text[second.start : second.end] == second.text


def test_rows_bring_the_first_line_of_their_table() -> None:
    chunk = make_chunk("Model | Torque\nTP 40 | 6 Nm\n\nTP 65 | 9 Nm", is_table=True)
    header, *rows = chunk_sentences(chunk)
    assert header.heading == "Limits"
    assert [row.text for row in rows] == ["TP 40 | 6 Nm", "TP 65 | 9 Nm"]
    assert rows[1].embedded_text == "Limits Model | Torque: TP 65 | 9 Nm"
