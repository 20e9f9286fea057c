"""What a generator has to reach, and why so much."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares are 0 to 1; one of nothing is 1 where more is better, else 0.

    answered_right: of the answerable questions, those with every wanted value, without another one
        in the first sentence, and citing evidence that answers.
    refused: of the unanswerable questions, those told to have no answer.
    supported, unsupported: of the sentences of answers to answerable questions.
    citation_precision: of their citations, those of evidence that answers.
    well_formed: of all answers: complete, short, every sentence cited, nothing of the prompt in it.
    structural_errors: markers that lead nowhere, counted after the filter.
    """

    answered_right: float
    refused: float
    supported: float
    unsupported: float
    citation_precision: float
    well_formed: float
    structural_errors: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """`figure`: a field of Figures. Below `bound` it fails; above it where `is_maximum`."""

    figure: str
    bound: float
    why: str
    is_maximum: bool = False

    def holds(self, figures: Figures) -> bool:
        value = float(getattr(figures, self.figure))
        return value <= self.bound if self.is_maximum else value >= self.bound


THRESHOLDS = (
    Threshold(
        "answered_right",
        0.9,
        "quoting the best sentence answers 10 of 10 such questions: writing may cost one in ten",
    ),
    Threshold(
        "refused",
        0.75,
        "most unanswerable questions are stopped before a generator sees them; of the rest, it has"
        " to see three in four",
    ),
    Threshold(
        "supported",
        0.8,
        "an unsupported sentence is replaced, a weak one is shown flagged: one in five may be",
    ),
    Threshold(
        "unsupported",
        0.05,
        "each is held back and replaced by a quote, which reads badly and costs time",
        is_maximum=True,
    ),
    Threshold("citation_precision", 0.9, "a wrong citation sends the reader to the wrong page"),
    Threshold("well_formed", 0.95, "what is cut off, repeated or uncited cannot be checked"),
    Threshold(
        "structural_errors",
        0,
        "the filter drops every marker of no passage: one that is left is a bug of ours",
        is_maximum=True,
    ),
)
