"""Outcomes to figures, and whether a pass is still possible."""

from __future__ import annotations

from collections.abc import Sequence

from query.gate.judging import Outcome
from query.gate.thresholds import THRESHOLDS, Figures

UNANSWERABLE = "unanswerable"


def figures_of(outcomes: Sequence[Outcome]) -> Figures:
    """The figures over the answers that were tried."""
    answerable = [outcome for outcome in outcomes if outcome.kind != UNANSWERABLE]
    others = [outcome for outcome in outcomes if outcome.kind == UNANSWERABLE]
    num_sentences = sum(outcome.num_sentences for outcome in answerable)
    num_citations = sum(outcome.num_citations for outcome in answerable)
    return Figures(
        answered_right=_share(sum(o.is_right for o in answerable), len(answerable)),
        refused=_share(sum(o.is_right for o in others), len(others)),
        supported=_share(sum(o.num_supported for o in answerable), num_sentences),
        unsupported=1 - _share(num_sentences - _num_unsupported(answerable), num_sentences),
        citation_precision=_share(sum(o.num_right_citations for o in answerable), num_citations),
        well_formed=_share(sum(not o.problems for o in outcomes), len(outcomes)),
        structural_errors=sum(o.num_structural_errors for o in outcomes),
    )


def failing(figures: Figures) -> tuple[str, ...]:
    """The figures that miss their thresholds."""
    return tuple(threshold.figure for threshold in THRESHOLDS if not threshold.holds(figures))


def can_pass(outcomes: Sequence[Outcome], kinds: Sequence[str]) -> bool:
    """Whether a pass is still possible when all further answers are perfect.

    Args:
        outcomes: so far. kinds: of all questions of the suite.
    Only what counts questions is looked at: how many sentences are still to come nobody knows.
    """
    num_unanswerable = kinds.count(UNANSWERABLE)
    lost = {
        "answered_right": sum(not o.is_right for o in outcomes if o.kind != UNANSWERABLE),
        "refused": sum(not o.is_right for o in outcomes if o.kind == UNANSWERABLE),
        "well_formed": sum(bool(o.problems) for o in outcomes),
    }
    totals = {
        "answered_right": len(kinds) - num_unanswerable,
        "refused": num_unanswerable,
        "well_formed": len(kinds),
    }
    return not any(
        threshold.figure in lost
        and _share(totals[threshold.figure] - lost[threshold.figure], totals[threshold.figure])
        < threshold.bound
        for threshold in THRESHOLDS
    )


def _num_unsupported(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.num_unsupported for outcome in outcomes)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
