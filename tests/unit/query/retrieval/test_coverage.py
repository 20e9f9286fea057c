"""Rare words of a question count more, and only those that the texts hold."""

import pytest

from query.retrieval.coverage import passage_terms, terms_of, weigh
from query.retrieval.questions import WordKind, analyse
from tests.passages import make_chunk, make_passage

QUESTION = analyse("Who tests the pumps of Hall 7?")


def test_a_word_that_every_candidate_has_weighs_less_than_a_rare_one() -> None:
    passages = [make_passage(f"The pumps number {i}.", f"p{i}") for i in range(10)]
    passages.append(make_passage("Hall 7 is closed.", "hall"))
    found = weigh(QUESTION, passages)
    weights = dict(zip([w.text for w in QUESTION.words], found.weights, strict=True))
    assert weights["tests"] > weights["hall"] > weights["pumps"] > 0


def test_coverage_is_the_weighted_share() -> None:
    weights = weigh(QUESTION, [])
    assert weights.coverage(terms_of(["tested pumps in hall 7"], "en"), "en") == 1.0
    assert weights.coverage(set(), "en") == 0.0
    assert weights.coverage(terms_of(["pumps"], "en"), "en") == pytest.approx(1 / 4)


def test_coverage_of_some_words_and_of_none() -> None:
    weights = weigh(QUESTION, [])
    names = [word for word in QUESTION.words if word.kind is not WordKind.PLAIN]
    assert weights.coverage_of(terms_of(["hall"], "en"), "en", names) == pytest.approx(0.5)
    assert weights.coverage_of(set(), "en", []) == 1.0
    assert weigh(analyse("who is it?"), []).coverage(set(), "en") == 1.0


def test_a_passages_terms_are_those_that_were_indexed() -> None:
    chunk = make_chunk("Every spring.", title="Manual", headings=("Pumps",))
    assert {"manual", "pump", "spring"} <= passage_terms(make_passage(chunk))


def test_a_text_is_read_in_its_own_language() -> None:
    question = analyse("Wie oft werden die Pumpen geprüft?")
    german = terms_of(["Prüfung der Pumpe"], "de")
    assert weigh(question, []).coverage(german, "de") >= 0.5
