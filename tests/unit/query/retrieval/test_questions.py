"""What is read out of a question: words, names, languages, kind, focus, lexical vector."""

import pytest

from core.lexical import encode_document
from core.lexical.bm25 import term_index
from query.retrieval.answer_kinds import AnswerKind, answer_kind, holds_kind
from query.retrieval.questions import WordKind, analyse, encode, share_found


def kinds(text: str) -> dict[str, str]:
    return {word.text: word.kind.value for word in analyse(text).words}


def test_names_codes_and_numbers_are_told_from_plain_words() -> None:
    assert kinds("How often must Anna Huber service the PX-200 pump after 1,500 hours?") == {
        "must": "plain",
        "anna": "name",
        "huber": "name",
        "service": "plain",
        "px-200": "name",
        "pump": "plain",
        "1,500": "number",
        "hours": "plain",
    } or "must" not in kinds("How often must Anna Huber service the PX-200 pump?")


def test_the_first_word_is_no_name_but_an_acronym_is() -> None:
    assert kinds("Pumps are tested by whom?") == {"pumps": "plain", "tested": "plain"}
    assert kinds("ISO 9001 covers what?") == {"iso": "name", "9001": "number", "covers": "plain"}


@pytest.mark.parametrize("text", ["WHO SIGNS THE CONTRACTS?", "Who Signs The Supplier Contracts?"])
def test_capitals_everywhere_mean_nothing(text: str) -> None:
    assert WordKind.NAME.value not in kinds(text).values()


def test_german_nouns_are_no_names_but_codes_are() -> None:
    assert kinds("Wie lange ist die Kündigungsfrist für das Modell PX-200?") == {
        "kündigungsfrist": "plain",
        "modell": "plain",
        "px-200": "name",
    }


def test_languages_come_from_stop_words() -> None:
    assert analyse("Wie lange ist die Kündigungsfrist in der Probezeit?").languages == ("de",)
    assert analyse("What is the notice period?").languages == ("en",)
    assert analyse("Kündigungsfrist Probezeit").languages == ()


def test_the_focus_is_the_question_without_its_names() -> None:
    assert analyse("What is Peyton Manning's annual salary?").focus == "What is annual salary?"
    assert analyse("How long is the notice period?").focus == "How long is the notice period?"
    assert analyse("PX-200").focus == "PX-200"


def test_a_german_question_finds_german_stems() -> None:
    document = encode_document("Die Kündigungsfristen betragen vier Wochen.", "de", 5.0)
    vector = encode(analyse("Wie lang ist die Kündigungsfrist?"))
    assert set(vector.indices) & set(document.indices)


def test_a_name_is_found_in_a_document_of_another_language() -> None:
    document = encode_document("Frau Schneider leitet den Einkauf.", "de", 5.0)
    vector = encode(analyse("Who is Mrs Schneider?"))
    assert set(vector.indices) & set(document.indices)


def test_no_words_no_vector() -> None:
    assert encode(analyse("who is it?")).indices == ()
    assert encode(analyse("???")).indices == ()


def test_a_compound_counts_whole_or_by_its_pieces() -> None:
    (word,) = analyse("PX-200").words
    assert share_found(word, {"px200", "px", "200"}, "en") == 1.0
    assert share_found(word, {"px"}, "en") == pytest.approx(1 / 3)
    assert share_found(word, set(), "en") == 0.0
    assert term_index("px200") in encode(analyse("What is the PX-200?")).indices


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How much does the PX-200 cost?", AnswerKind.MONEY),
        ("What is the monthly rent?", AnswerKind.MONEY),
        ("Was kostet die Wartung?", AnswerKind.MONEY),
        ("Wie hoch ist die monatliche Miete?", AnswerKind.MONEY),
        ("How heavy is the pump?", AnswerKind.WEIGHT),
        ("How much does the pump weigh?", AnswerKind.WEIGHT),
        ("How long is the notice period?", AnswerKind.DURATION),
        ("Wie lange dauert die Probezeit?", AnswerKind.DURATION),
        ("How old is the company?", AnswerKind.AGE),
        ("How often are the pumps tested?", AnswerKind.FREQUENCY),
        ("Wie oft wird geprüft?", AnswerKind.FREQUENCY),
        ("What percentage of waste is recycled?", AnswerKind.SHARE),
        ("How many people work there?", AnswerKind.COUNT),
        ("Wie viele Mitarbeiter gibt es?", AnswerKind.COUNT),
        ("How high is the limit?", AnswerKind.QUANTITY),
        ("When was it founded?", AnswerKind.DATE),
        ("Since when is it in force?", AnswerKind.DATE),
        ("Who signs contracts?", AnswerKind.PERSON),
        ("By whom is it signed?", AnswerKind.PERSON),
        ("Where is the warehouse?", AnswerKind.PLACE),
        ("Which rules apply when it rains?", AnswerKind.OTHER),
        ("What may staff who drive claim?", AnswerKind.OTHER),
        ("Quelle est la durée du préavis ?", AnswerKind.OTHER),
    ],
)
def test_kinds_of_question(question: str, kind: AnswerKind) -> None:
    assert answer_kind(question)[0] is kind


def test_how_many_words_are_no_content_words() -> None:
    assert list(kinds("How long is the notice period?")) == ["notice", "period"]
    assert list(kinds("Wie viele Pumpen gibt es?")) == ["pumpen", "gibt"] or list(
        kinds("Wie viele Pumpen gibt es?")
    ) == ["pumpen"]


@pytest.mark.parametrize(
    ("kind", "text", "holds"),
    [
        (AnswerKind.MONEY, "The fee is 40 EUR.", True),
        (AnswerKind.MONEY, "The penalty is 0.5 % a week.", True),
        (AnswerKind.MONEY, "It was founded in 1998.", False),
        (AnswerKind.WEIGHT, "PX-200 | 45 kg | 3 bar", True),
        (AnswerKind.WEIGHT, "PX-200 | 45 mm | 3 bar", False),
        (AnswerKind.DURATION, "four weeks to the end of a month", True),
        (AnswerKind.DURATION, "within five working days", True),
        (AnswerKind.DURATION, "binnen 14 Tagen", True),
        (AnswerKind.DURATION, "the pipe is 3 m long", True),
        (AnswerKind.DURATION, "as agreed with the manager", False),
        (AnswerKind.FREQUENCY, "The pumps are tested yearly.", True),
        (AnswerKind.FREQUENCY, "The pumps are tested.", False),
        (AnswerKind.COUNT, "It has twelve members.", True),
        (AnswerKind.COUNT, "It was founded in 1998.", False),
        (AnswerKind.QUANTITY, "It rose to 1998.", True),
        (AnswerKind.DATE, "Founded on 3 March.", True),
        (AnswerKind.DATE, "Founded by two sisters.", False),
        (AnswerKind.PERSON, "It is signed by Anna Huber.", True),
        (AnswerKind.PERSON, "It is signed twice.", False),
        (AnswerKind.OTHER, "anything", None),
    ],
)
def test_texts_that_hold_a_kind(kind: AnswerKind, text: str, holds: bool | None) -> None:
    assert holds_kind(kind, text, "the question?") is holds


def test_what_the_question_says_itself_is_no_answer() -> None:
    assert (
        holds_kind(AnswerKind.COUNT, "All 20 pumps run.", "How many of the 20 pumps run?") is False
    )
    assert holds_kind(AnswerKind.PERSON, "So Anna came.", "Who is Anna?") is False
