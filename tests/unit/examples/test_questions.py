"""The sample questions are honest: where they say the evidence is, there it is, and only there."""

import re
from collections import Counter
from typing import Any

import pytest
import Stemmer

from tests.unit.examples.conftest import PageText
from tests.unit.examples.test_documents import SCAN

Question = dict[str, Any]
GERMAN = "plant/betriebsanleitung-dosierstation.pdf"

# Function words and the words that any question is made of; everything else is content.
STOP_WORDS = {
    "en": """
        a about after again all am an and another any are as at away be because been before being
        between both but by can could did do does each few for from get give given had has have he
        her here him his how i if in into is it its just may me might more most must my no nor not
        of off on once one only or other our out over own she should so some such than that the
        their them then there these they this those through to too two under until up us very was
        we were what when where which while who whom whose why will with without would you your
    """,
    "de": """
        aber alle als am an auch auf aus bei beim bis da damit dann das dass dem den der des die
        dies diese dieser doch dort durch ein eine einem einen einer eines er es etwa für hat haben
        hier ich ihr im in ist ja kann kein keine man mehr mit muss nach nicht noch nur ob oder
        ohne sehr sein seine sich sie sind so soll über um und unter vom von vor wann war was weil
        wenn wer werden wie wird wo wurde zu zum zur
    """,
}


def content_words(text: str, language: str) -> set[str]:
    """Stems of the content words; words with a digit are numbers, codes or units."""
    stemmer = Stemmer.Stemmer({"en": "english", "de": "german"}[language])
    stop_words = set(STOP_WORDS[language].split())
    words = re.findall(r"\w+", text.lower().replace("'s", ""))
    kept = [w for w in words if w not in stop_words and not any(c.isdigit() for c in w)]
    return {str(stem) for stem in stemmer.stemWords([word for word in kept if len(word) > 1])}


def shared_words(question: Question) -> set[tuple[str, str]]:
    """Pairs of words of question and quote with one stem or the same first four letters."""
    language = "de" if question["document"] == GERMAN else "en"
    asked = content_words(question["question"], language)
    quoted = content_words(question["quote"], language)
    return {
        (ours, theirs)
        for ours in asked
        for theirs in quoted
        if ours == theirs or (len(ours) >= 4 and ours[:4] == theirs[:4])
    }


def of_kind(questions: list[Question], **wanted: object) -> list[Question]:
    return [q for q in questions if all(q.get(name) == value for name, value in wanted.items())]


def test_there_are_as_many_of_each_kind_as_promised(questions: list[Question]) -> None:
    assert [q["id"] for q in questions] == [f"q{num:02d}" for num in range(1, 37)]
    assert len({q["question"] for q in questions}) == 36
    kinds = Counter((q["answerable"], q.get("paraphrase"), q.get("named")) for q in questions)
    assert kinds == {
        (True, False, None): 16,
        (True, True, None): 8,
        (False, None, True): 6,
        (False, None, False): 6,
    }


def test_every_text_document_is_asked_about(questions: list[Question], pages: PageText) -> None:
    asked = Counter(q["document"] for q in questions if q["answerable"])
    assert set(asked) == {key for key, _ in pages} - {SCAN}
    assert asked[GERMAN] == 3


def test_each_quote_is_on_its_page_and_nowhere_else(
    questions: list[Question], pages: PageText
) -> None:
    for question in of_kind(questions, answerable=True):
        also = [(place["document"], place["page"]) for place in question.get("also", ())]
        found = [place for place, text in pages.items() if question["quote"] in text]
        assert sorted(found) == sorted([(question["document"], question["page"]), *also]), question


def test_each_quote_is_whole_sentences_or_a_table_row(
    questions: list[Question], pages: PageText
) -> None:
    for question in of_kind(questions, answerable=True):
        quote, text = question["quote"], pages[question["document"], question["page"]]
        start = text.index(quote)
        before = text[:start].rstrip()
        if quote.endswith("."):
            # a sentence starts after the end of another one, a heading or a clause number
            assert quote[0].isupper(), question
            assert re.search(r"(^|[.:!?•]|\d\.\d|\w)$", before), question
            assert before[-1] != ",", question
        else:
            assert re.search(r"\d", quote), question  # a row of figures
            assert len(quote.split()) >= 4, question


def test_a_paraphrase_shares_no_content_word_with_its_evidence(questions: list[Question]) -> None:
    for question in of_kind(questions, paraphrase=True):
        assert not shared_words(question), question


def test_the_other_questions_do_share_words(questions: list[Question]) -> None:
    # so the flag is right in both directions, and the check above is able to fail
    for question in of_kind(questions, paraphrase=False):
        assert shared_words(question), question


@pytest.mark.parametrize(
    ("asked", "quoted", "language", "document"),
    [
        ("Is the pump tested?", "All pumps pass a test.", "en", "x.pdf"),
        ("When is it repaid?", "Repaying it takes two years.", "en", "x.pdf"),
        ("Wer prüft die Ventile?", "Das Ventil wird geprüft.", "de", GERMAN),
    ],
)
def test_the_word_check_sees_inflected_forms(
    asked: str, quoted: str, language: str, document: str
) -> None:
    assert shared_words({"question": asked, "quote": quoted, "document": document}), language


def test_what_a_named_question_names_does_occur(questions: list[Question], pages: PageText) -> None:
    for question in of_kind(questions, named=True):
        assert question["names"]
        for name in question["names"]:
            assert name in question["question"]
            assert any(name in text for text in pages.values()), name


def test_what_the_other_unanswerable_questions_are_about_never_occurs(
    questions: list[Question], pages: PageText
) -> None:
    everything = " ".join(pages.values()).lower()
    for question in of_kind(questions, named=False):
        asked = question["question"].lower()
        assert any(word in asked for word in question["absent"]), question
        for word in question["absent"]:
            assert not re.search(rf"\b{re.escape(word)}", everything), (question["id"], word)
