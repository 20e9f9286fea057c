"""The gate lets a perfect generator pass, and each single kind of mistake fail."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from core.errors import GeneratorUnavailable
from core.settings import Settings
from query.gate import GateResult, run_gate
from query.gate.figures import can_pass, failing, figures_of
from query.gate.suite import GateQuestion, read_questions, read_sentences
from query.gate.thresholds import THRESHOLDS, Figures
from query.gate.verifier_check import check_verifier
from tests.fakes.gate import Answer, generator_for_gate, perfect

NOW = datetime(2026, 11, 30, tzinfo=UTC)


async def tried(answer: Answer = perfect, *, asks_all: bool = True) -> GateResult:
    generator = generator_for_gate(answer)
    return await run_gate(generator, Settings(), NOW, num_at_once=3, asks_all=asks_all)


def _other(question: GateQuestion) -> int:
    """The number of evidence that does not answer; the first where all does."""
    numbers = range(1, len(question.evidence) + 1)
    return next((n for n in numbers if n not in question.answering), 1)


def wrong_evidence(question: GateQuestion) -> str:
    """Well cited and verbatim, but of the distractor."""
    if not question.is_answerable:
        return perfect(question)
    number = _other(question)
    return f"{question.evidence[number - 1][1].rstrip('.')} [{number}]."


def wrong_citation(question: GateQuestion) -> str:
    return (
        perfect(question).replace(f"[{question.answering[0]}]", f"[{_other(question)}]")
        if (question.is_answerable)
        else perfect(question)
    )


def no_citation(question: GateQuestion) -> str:
    answer = perfect(question)
    for number in question.answering:
        answer = answer.replace(f" [{number}]", "")
    return answer


def unknown_citation(question: GateQuestion) -> str:
    answer = perfect(question)
    for number in question.answering:
        answer = answer.replace(f"[{number}]", f"[{number + 20}]")
    return answer


def never_refuses(question: GateQuestion) -> str:
    return perfect(question) if question.is_answerable else "It is exactly 73 [1]."


def always_refuses(question: GateQuestion) -> str:
    return "The passages do not say this."


def invents(question: GateQuestion) -> str:
    """The right answer, and something that no passage says."""
    number = question.answering[0] if question.is_answerable else 0
    made_up = f" Experts from Brussels confirmed this in 1957 [{number}]."
    return perfect(question) + (made_up if number else "")


def rambles(question: GateQuestion) -> str:
    return " ".join([perfect(question)] * 4)


def repeats_the_prompt(question: GateQuestion) -> str:
    return f"{perfect(question)}\nQuestion: {question.question}"


def writes_markup(question: GateQuestion) -> str:
    return f"{perfect(question)} ![chart](https://example.org/chart.png)"


async def test_a_perfect_generator_passes() -> None:
    result = await tried()
    assert result.failing == ()
    assert result.has_passed
    assert result.figures == Figures(1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0)
    assert (result.num_asked, result.num_questions) == (100, 100)
    assert result.model == "fake"
    assert result.date == "2026-11-30T00:00:00+00:00"


@pytest.mark.parametrize(
    ("answer", "missed"),
    [
        (wrong_evidence, {"answered_right", "citation_precision"}),
        (wrong_citation, {"answered_right", "citation_precision", "unsupported"}),
        (no_citation, {"answered_right", "supported", "well_formed"}),
        (unknown_citation, {"answered_right", "well_formed"}),
        (never_refuses, {"refused"}),
        (always_refuses, {"answered_right", "well_formed"}),
        (invents, {"supported", "unsupported"}),
        (rambles, {"well_formed"}),
        (repeats_the_prompt, {"well_formed"}),
        (writes_markup, {"well_formed"}),
        (lambda _question: "", {"answered_right", "well_formed"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_one_kind_of_mistake_fails(answer: Answer, missed: set[str]) -> None:
    result = await tried(answer)
    assert not result.has_passed
    assert missed <= set(result.failing)
    assert result.figures.structural_errors == 0


@pytest.mark.parametrize(("every", "has_passed"), [(12, True), (8, False)])
async def test_a_few_wrong_answers_are_forgiven(every: int, has_passed: bool) -> None:
    answerable = [question for question in read_questions() if question.is_answerable]
    wrong = {question.id for question in answerable[::every]}

    def answer(question: GateQuestion) -> str:
        return (wrong_evidence if question.id in wrong else perfect)(question)

    assert (await tried(answer)).has_passed is has_passed


async def test_it_stops_when_a_pass_is_out_of_reach() -> None:
    result = await tried(wrong_evidence, asks_all=False)
    assert not result.has_passed
    assert result.num_asked < 30
    assert (await tried(perfect, asks_all=False)).has_passed


async def test_a_text_that_is_cut_off_is_not_well_formed() -> None:
    generator = generator_for_gate()
    settings = Settings.model_validate({"answer": {"max_tokens": 3}})
    result = await run_gate(generator, settings, NOW, asks_all=True)
    assert result.figures.well_formed < 0.5
    assert "cut_off" in result.outcomes[0].problems


async def test_a_generator_that_is_down_has_no_verdict() -> None:
    generator = generator_for_gate()
    generator.error = GeneratorUnavailable("gone")
    with pytest.raises(GeneratorUnavailable):
        await run_gate(generator, Settings(), NOW)


async def test_questions_are_asked_with_the_products_prompt_at_temperature_0() -> None:
    generator = generator_for_gate()
    await run_gate(generator, Settings(), NOW)
    assert len(generator.requests) == 100
    for request in generator.requests:
        assert request.temperature == 0.0
        assert request.messages[0].role == "system"
        assert "\n[1] " in request.messages[-1].content


def test_structural_errors_fail_by_themselves() -> None:
    clean = Figures(1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0)
    assert failing(clean) == ()
    assert failing(Figures(1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1)) == ("structural_errors",)


def test_each_threshold_can_fail_alone() -> None:
    clean = dict.fromkeys(Figures.__dataclass_fields__, 1.0) | {"unsupported": 0.0}
    for threshold in THRESHOLDS:
        assert threshold.why
        step = 0.01 if threshold.is_maximum else -0.01
        figures = Figures(
            **{**clean, "structural_errors": 0, threshold.figure: threshold.bound + step}  # type: ignore[arg-type]
        )
        assert failing(figures) == (threshold.figure,)


def test_a_pass_is_possible_before_anything_was_asked() -> None:
    assert can_pass([], [question.kind for question in read_questions()])
    assert failing(figures_of([])) == ()


def test_the_suite_is_whole() -> None:
    questions = read_questions()
    assert len({question.id for question in questions}) == 100
    assert len({question.question for question in questions}) == 100
    kinds = Counter(question.kind for question in questions)
    assert set(kinds) == {"number", "date", "name", "fact", "negation", "two", "unanswerable"}
    assert 18 <= kinds["unanswerable"] <= 22
    for question in questions:
        assert question.is_answerable == (question.kind != "unanswerable") == bool(question.must)
        assert all(1 <= number <= len(question.evidence) for number in question.answering)
        assert 1 <= len(question.evidence) <= 4
        assert len(question.answering) == 2 or question.kind != "two"


def test_the_verifier_holds_on_its_sentences() -> None:
    sentences = read_sentences()
    assert len({sentence.id for sentence in sentences}) == 100
    assert sum(sentence.is_supported for sentence in sentences) == 50
    figures = check_verifier()
    assert figures.kept >= 0.95
    assert figures.caught >= 0.9
    assert figures.misled <= 0.06
