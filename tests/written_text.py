"""An answer under way and three quotes that it may cite, for tests of written text."""

from __future__ import annotations

from datetime import UTC, datetime

from core.domain.answers import Answer, AnswerMode, AnswerStatus
from core.domain.pages import Location
from query.answers.draft import Draft
from query.answers.evidence import Evidence
from query.answers.quotes import Quote
from query.answers.sources import SourceMaker
from query.answers.writing.given import GivenPassage
from tests.fakes.clock import FakeClock
from tests.passages import make_passage, make_scored, make_version

TEXTS = (
    "The pumps are tested yearly by the operator.",
    "Valves are painted red.",
    "The notice period is 3 months, not 30 days.",
)


def quote_of(number: int) -> Quote:
    passage = make_passage(TEXTS[number - 1], f"p{number}")
    evidence = Evidence(passage, 0, len(TEXTS[number - 1]), make_scored(passage))
    place = Location(1, 0, len(TEXTS[number - 1]), ((0.1, 0.1, 0.9, 0.2),))
    return Quote(evidence, make_version(), TEXTS[number - 1], (place,), {1: (600.0, 800.0)})


QUOTES = [quote_of(number) for number in (1, 2, 3)]
GIVEN = [
    GivenPassage(number, "Manual", quote.text, (quote,)) for number, quote in enumerate(QUOTES, 1)
]


def make_draft() -> Draft:
    answer = Answer(
        id="ans_1",
        question="?",
        answer_status=AnswerStatus.ANSWERED,
        mode=AnswerMode.GENERATIVE,
        text="",
        citations=(),
        sources=(),
        created_at=datetime(2026, 1, 5, tzinfo=UTC).isoformat(),
    )
    draft = Draft(answer, SourceMaker("ans_1", "", shows_scores=False), FakeClock())
    draft.number_sources({f"p{number}": f"s{number}" for number in (1, 2, 3)})
    return draft
