"""The ruler, before it measures: the verifier against the suite's 100 labelled sentences."""

from __future__ import annotations

from dataclasses import dataclass

from core.domain.answers import Verdict
from core.errors import InternalError
from query.answers.verification import verify
from query.gate.suite import read_sentences

# Of the sentences that are supported, and of those that are not.
MIN_KEPT = 0.95
MIN_CAUGHT = 0.85


@dataclass(frozen=True, slots=True)
class VerifierFigures:
    """`kept`: share of the supported sentences that are not told to be unsupported; `caught`: share
    of the others that are; `misled`: share of the others that are told to be supported."""

    kept: float
    caught: float
    misled: float


def check_verifier() -> VerifierFigures:
    """Pure and fast. Raises InternalError when the verifier is too bad to measure with."""
    kept: list[bool] = []
    verdicts: list[Verdict] = []
    for item in read_sentences():
        verdict = verify(item.sentence, item.quotes, item.language, headings=[item.title]).verdict
        if item.is_supported:
            kept.append(verdict is not Verdict.UNSUPPORTED)
        else:
            verdicts.append(verdict)
    figures = VerifierFigures(
        kept=sum(kept) / len(kept),
        caught=verdicts.count(Verdict.UNSUPPORTED) / len(verdicts),
        misled=verdicts.count(Verdict.SUPPORTED) / len(verdicts),
    )
    if figures.kept < MIN_KEPT or figures.caught < MIN_CAUGHT:
        raise InternalError("the verifier fails its own sentences: the gate would measure nothing")
    return figures
