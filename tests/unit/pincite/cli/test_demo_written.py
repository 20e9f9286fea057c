"""The demo passes good written answers, and fails for each kind of fault."""

import copy
from typing import Any

import pytest

from pincite.cli.demo_written import MIN_QUESTIONS, Written, ask_in_words

PAGE = "The pumps are tested yearly."


def good_answer() -> dict[str, Any]:
    return {
        "mode": "generative",
        "text": "Yearly [1].",
        "sentences": [
            {"verdict": "supported", "is_replaced": False},
            {"verdict": "weak", "is_replaced": False},
        ],
        "citations": [
            {"n": 1, "sources": [
                {"source_id": "s1", "quote": "tested yearly",
                 "locations": [{"page": 1, "start": 14, "end": 27}]}]}
        ],
        "sources": [{"id": "s1", "document_id": "doc_1"}],
        "usage": {"prompt_tokens": 100, "cached_tokens": 80, "completion_tokens": 20},
        "timings": {"ttft_ms": 500.0, "total_ms": 1500.0},
    }  # fmt: skip


class FakeClient:
    """Answers from a list and counts what the engine completes."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.num_completed = 7  # from before
        self.completes = True

    def ask(self, question: str, *, mode: str | None = None) -> dict[str, Any]:
        assert mode == "generative"
        self.num_completed += self.completes
        return self.answers[int(question)]

    def page(self, document_id: str, number: int) -> dict[str, Any]:
        assert (document_id, number) == ("doc_1", 1)
        return {"text": PAGE}


@pytest.fixture
def client() -> FakeClient:
    return FakeClient([copy.deepcopy(good_answer()) for _ in range(MIN_QUESTIONS)])


def judge(client: FakeClient) -> Written:
    questions = [str(number) for number in range(len(client.answers))]
    return ask_in_words(client, lambda: client.num_completed, questions, lambda _: [])


def test_good_answers_pass_with_their_figures(client: FakeClient) -> None:
    client.answers[0]["usage"]["cached_tokens"] = 0  # the first prompt has nobody before it
    client.answers[1]["sentences"][0]["is_replaced"] = True
    found = judge(client)
    assert found.problems == ()
    assert (found.num_questions, found.num_completed) == (MIN_QUESTIONS, MIN_QUESTIONS)
    assert (found.first_token_ms, found.tokens_per_s) == (500.0, 20.0)
    assert found.supported == 7 / 16
    assert found.flagged == 0.5
    assert found.replaced == 1 / 16
    assert found.cached == 560 / 800
    assert any("7 of" in line or "8 of 8" in line for line in found.lines())


def test_too_few_questions_fail(client: FakeClient) -> None:
    client.answers.pop()
    assert "only 7 questions" in judge(client).problems[0]


def test_answers_the_engine_did_not_write_fail(client: FakeClient) -> None:
    client.completes = False
    assert "completed 0 requests" in judge(client).problems[0]


def test_a_cache_that_is_never_hit_fails(client: FakeClient) -> None:
    client.answers[3]["usage"]["cached_tokens"] = 0
    assert judge(client).problems == ("nothing of prompt 4 came from the cache",)


@pytest.mark.parametrize(
    "fault",
    [
        lambda quoted: quoted.update(quote="tested weekly"),
        lambda quoted: quoted["locations"][0].update(start=15),
        lambda quoted: quoted.update(locations=[]),
        lambda quoted: quoted.update(source_id="s9"),
    ],
)
def test_a_citation_that_is_not_on_its_page_fails(client: FakeClient, fault: Any) -> None:
    fault(client.answers[2]["citations"][0]["sources"][0])
    assert judge(client).problems == ("answer 3 cites [1], which is not what its page says",)


def test_a_citation_of_nothing_fails(client: FakeClient) -> None:
    client.answers[2]["citations"][0]["sources"] = []
    assert len(judge(client).problems) == 1
