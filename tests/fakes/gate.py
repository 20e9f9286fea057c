"""Generators for the gate's suite that know its labels, and make one kind of mistake or none."""

from collections.abc import Callable

from core.domain.generation import GenerationRequest
from query.gate.suite import GateQuestion, read_questions
from tests.fakes.generator import FakeGenerator

Answer = Callable[[GateQuestion], str]

NO_ANSWER = {
    "en": "The passages do not say this.",
    "de": "Das wird in den Passagen nicht genannt.",
}


def perfect(question: GateQuestion) -> str:
    """The evidence that answers, word by word and cited; else that there is no answer."""
    if not question.is_answerable:
        return NO_ANSWER[question.language]
    return " ".join(
        f"{question.evidence[number - 1][1].rstrip('.')} [{number}]."
        for number in question.answering
    )


def generator_for_gate(answer: Answer = perfect) -> FakeGenerator:
    """Answers by the question that it finds in the prompt."""
    by_text = {question.question: question for question in read_questions()}

    def write(request: GenerationRequest) -> str:
        asked = request.messages[-1].content.rpartition("Question: ")[2]
        return answer(by_text[asked])

    return FakeGenerator(write)
