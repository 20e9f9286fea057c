"""Whether the quotes have a sentence's numbers, with their units and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from query.answers.verification.problems import Problem, ProblemKind
from query.answers.verification.quantities import ORDINAL_UNIT, Bound, Quantity
from query.answers.verification.tokens import Token
from query.answers.verification.units import same_unit


def quantity_problems(
    wanted: Iterable[Quantity],
    tokens: Sequence[Token],
    available: Sequence[Quantity],
    loose: frozenset[Decimal],
) -> list[Problem]:
    """`tokens`: of the sentence that the wanted quantities are of. `loose`: numbers that the quotes
    have without saying of what (in codes and dates)."""
    problems: list[Problem] = []
    for quantity in wanted:
        text = " ".join(token.text for token in tokens[quantity.first : quantity.after])
        found = _problem(quantity, available, loose)
        if found is not None:
            problems.append(Problem(found[0], text, is_hard=found[1]))
    return problems


def _problem(
    quantity: Quantity, available: Sequence[Quantity], loose: frozenset[Decimal]
) -> tuple[ProblemKind, bool] | None:
    """(kind, is_hard) of what is wrong."""
    same = [other for other in available if _same_values(quantity, other)]
    if quantity.unit == ORDINAL_UNIT:
        return _ordinal_problem(quantity, same, available)
    if quantity.is_soft:
        return None
    if not same:
        return _missing(quantity, available, loose)
    fitting = [other for other in same if same_unit(quantity.unit, other.unit)]
    if quantity.unit and not fitting:
        return ProblemKind.UNIT, not any(not other.unit for other in same)
    if not quantity.unit:
        if counted := _counted_problem(quantity, same, available):
            return counted
        fitting = same
    if quantity.per and all(other.per and other.per != quantity.per for other in fitting):
        return ProblemKind.UNIT, True
    return _bound_problem(quantity, fitting)


def _same_values(quantity: Quantity, other: Quantity) -> bool:
    if quantity.high is None:
        return bool(quantity.values & other.all_values)
    if other.high is None:
        return False
    return bool(quantity.values & other.values and quantity.high & other.high)


def _missing(
    quantity: Quantity, available: Sequence[Quantity], loose: frozenset[Decimal]
) -> tuple[ProblemKind, bool] | None:
    if quantity.high is not None:
        ends = (quantity.values, quantity.high)
        if all(any(end & other.all_values for other in available) for end in ends):
            return ProblemKind.BOUND, False
    if quantity.values & loose:
        return (ProblemKind.UNIT, False) if quantity.unit else None
    return ProblemKind.NUMBER, True


def _ordinal_problem(
    quantity: Quantity, same: Sequence[Quantity], available: Sequence[Quantity]
) -> tuple[ProblemKind, bool] | None:
    """Written as a number it must be there; as a word only when the quotes have other ones."""
    if any(other.unit == ORDINAL_UNIT for other in same):
        return None
    if any(other.unit == ORDINAL_UNIT for other in available):
        return ProblemKind.NUMBER, True
    return None if quantity.is_soft or same else (ProblemKind.NUMBER, True)


def _counted_problem(
    quantity: Quantity, same: Sequence[Quantity], available: Sequence[Quantity]
) -> tuple[ProblemKind, bool] | None:
    """Five pumps are not 5 mg, and not three pumps beside five valves."""
    if not quantity.nouns or any(quantity.nouns & other.nouns for other in same):
        return None
    if all(other.unit for other in same):
        return ProblemKind.UNIT, True
    if not any(other.nouns for other in same):  # "8,412 inhabitants in 2011 and 7,960 in 2021"
        return None
    if any(quantity.nouns & other.nouns for other in available):
        return ProblemKind.COUNTED, True
    return None


def _bound_problem(
    quantity: Quantity, fitting: Sequence[Quantity]
) -> tuple[ProblemKind, bool] | None:
    if any(_is_within_bound(quantity, other) for other in fitting):
        return None
    contradicts = all(_contradicts(quantity, other) for other in fitting)
    return ProblemKind.BOUND, contradicts


def _is_within_bound(quantity: Quantity, other: Quantity) -> bool:
    """Whether the quote's quantity says what the sentence's says."""
    if other.high is not None and quantity.high is None:
        if quantity.bound.is_lower:
            return bool(quantity.values & other.values)
        return quantity.bound.is_upper and bool(quantity.values & other.high)
    return quantity.bound is other.bound


def _contradicts(quantity: Quantity, other: Quantity) -> bool:
    if other.high is not None and quantity.high is None:
        return True  # one value of a range is not what the quote says
    mine, theirs = quantity.bound, other.bound
    if Bound.EXACT in {mine, theirs}:
        return False
    return mine.is_lower != theirs.is_lower
