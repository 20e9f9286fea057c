"""Questions that ask for several things, and those that only look like it."""

import pytest

from query.answers.parts import split_question


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What is the notice period and who signs the letter?",
         ["What is the notice period", "who signs the letter?"]),
        ("What does the PX-200 weigh, and how often must it be serviced?",
         ["What does the PX-200 weigh", "how often must it be serviced?"]),
        ("Who approves travel? When is it paid?", ["Who approves travel?", "When is it paid?"]),
        ("Wie lange ist die Probezeit und wer unterschreibt den Vertrag?",
         ["Wie lange ist die Probezeit", "wer unterschreibt den Vertrag?"]),
        ("Who tests the pumps, at which pressure are they tested and where is the log kept?",
         ["Who tests the pumps, at which pressure are they tested", "where is the log kept?"]),
    ],
)  # fmt: skip
def test_split(question: str, texts: list[str]) -> None:
    assert [part.text for part in split_question(question)] == texts


@pytest.mark.parametrize(
    "question",
    [
        "What are the rules for bread and butter?",
        "How often and by whom are the pumps tested?",
        "Which staff and contractors who drive need a licence?",
        "Was steht im Handbuch?",
        "The pumps and who tests them",
        "Who a and who b and who c and who d?",
        "?",
        "",
    ],
)
def test_left_whole(question: str) -> None:
    assert [part.text for part in split_question(question)] == [question]


def test_a_part_that_leans_on_the_others_is_searched_with_the_whole_question() -> None:
    question = "What does the PX-200 weigh and who services it?"
    weight, service = split_question(question)
    assert weight.query == weight.text == "What does the PX-200 weigh"
    assert (service.text, service.query) == ("who services it?", question)


def test_a_part_of_its_own_is_searched_by_itself() -> None:
    parts = split_question("What does the PX-200 weigh and who signs supplier contracts?")
    assert [part.query for part in parts] == [part.text for part in parts]
