"""What a check finds wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    NO_QUOTE = "no_quote"
    TOO_LONG = "too_long"
    NUMBER = "number"  # in no quote
    UNIT = "unit"
    COUNTED = "counted"  # the quotes count something else with it, or count it differently
    BOUND = "bound"  # at least / at most, a range / one value
    DATE = "date"
    NAME = "name"
    NEGATION = "negation"
    OPPOSITE = "opposite"  # must / may, before / after, rise / fall
    ASSIGNED = "assigned"  # the quotes say the value of something else
    REPLACED = "replaced"  # the quote's sentence with another word in one place
    CONTRADICTED = "contradicted"  # by the entailment model


VALUE_PROBLEMS = frozenset({
    ProblemKind.NUMBER, ProblemKind.UNIT, ProblemKind.COUNTED, ProblemKind.BOUND, ProblemKind.DATE,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """`is_hard`: the sentence is unsupported; else it is weak at best. `text`: the words."""

    kind: ProblemKind
    text: str
    is_hard: bool = True

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text}" if self.text else self.kind.value
