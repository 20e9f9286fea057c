"""Follow-ups become questions that stand alone; questions that do are left alone."""

import pytest

from core.domain.generation import ChatMessage
from query.retrieval.condensation import Condensed, condense, leans


def turns(*questions: str) -> list[ChatMessage]:
    """The questions, each with an answer after it."""
    return [
        message
        for question in questions
        for message in (ChatMessage("user", question), ChatMessage("assistant", "An answer."))
    ]


@pytest.mark.parametrize(
    "question",
    [
        "Why?",
        "How often?",
        "And in winter?",
        "What about the backup pump?",
        "Is it tested by an engineer?",
        "Who pays for them?",
        "Does this work at night?",
        "Which ones are exempt?",
        "Und im Winter?",
        "Wer bezahlt dafür?",
        "Was ist mit der Probezeit?",
    ],
)
def test_these_lean_on_what_was_said(question: str) -> None:
    assert leans(question)
    condensed = condense(question, turns("How is the relief valve of pump PX-200 tested?"))
    assert condensed.is_follow_up
    assert condensed.query.startswith(question)
    assert {"relief", "valve", "px-200"} <= set(condensed.query.split())


@pytest.mark.parametrize(
    "question",
    [
        "How often is the relief valve tested?",
        "Is it legal to record a phone call in Bavaria?",
        "What is the notice period for grade 7?",
        "Does this policy cover trains?",
        "What time is it possible to enter the laboratory?",
        "Wie lange ist die Kündigungsfrist?",
        "",
    ],
)
def test_these_stand_alone(question: str) -> None:
    assert not leans(question)
    earlier = turns("How is the relief valve of pump PX-200 tested?")
    assert condense(question, earlier) == Condensed(question, is_follow_up=False)


def test_the_first_question_has_nothing_to_lean_on() -> None:
    assert condense("And in winter?", []) == Condensed("And in winter?", is_follow_up=False)


def test_a_chain_of_follow_ups_keeps_its_subject() -> None:
    history = turns("How is the relief valve tested?", "How often?", "And by whom?")
    assert {"relief", "valve"} <= set(condense("Why?", history).query.split())


def test_a_new_subject_ends_the_old_one() -> None:
    history = turns("How is the relief valve tested?", "What is the travel allowance in Ireland?")
    carried = condense("And in France?", history).query.split()
    assert {"travel", "allowance"} <= set(carried)
    assert not {"relief", "valve"} & set(carried)


def test_what_was_answered_is_not_searched_for() -> None:
    history = [
        ChatMessage("user", "How is the valve tested?"),
        ChatMessage("assistant", "With nitrogen, at zebra crossings."),
    ]
    assert "zebra" not in condense("How often?", history).query


def test_what_is_carried_is_bounded_and_not_said_twice() -> None:
    long = "What about " + " ".join(f"subject{n}" for n in range(200)) + "?"
    query = condense("Is it the subject1?", turns(long)).query
    assert len(query.split()) <= 4 + 12
    assert query.split().count("subject1") <= 1


def test_old_turns_are_forgotten() -> None:
    history = turns("How is the relief valve tested?", *["Why?"] * 4)
    assert condense("How often?", history).query.split()[:2] == ["How", "often?"]
    assert "valve" not in condense("How often?", history).query
