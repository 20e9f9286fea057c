"""Whether quotes support a sentence: lexical coverage, and checks of what coverage gets wrong.

No model: a sentence and a few quotes take a millisecond or two, so that it can be held until it is
verified. Two models may be passed in: a similarity lifts paraphrases, an entailment model
decides against a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from core.domain.answers import Verdict
from query.answers.verification.assignment import assignment_problems, replacements
from query.answers.verification.dates import date_problems
from query.answers.verification.names import name_problems
from query.answers.verification.overlap import WORD_WEIGHT, coverage, weighed_words
from query.answers.verification.polarity import polarity_problems
from query.answers.verification.problems import VALUE_PROBLEMS, Problem, ProblemKind
from query.answers.verification.quantity_check import quantity_problems
from query.answers.verification.statements import Statement, read_statement

# Of the sentence's content words. docs/gate.md says on what all of these were chosen.
SUPPORTED_COVERAGE = 0.75
WEAK_COVERAGE = 0.5
# What is longer is no sentence, and nobody can tell where it comes from. Bounds the time, too.
MAX_SENTENCE_CHARS = 2_000
# What is left of the support score per objection, of at most two each.
HARD_FACTOR = 0.5
SOFT_FACTOR = 0.9
# A number or date counts as much as so many words.
VALUE_WEIGHT = 2.0 * WORD_WEIGHT
# How much the quote that has the most words counts beside all quotes together.
NEAREST_SHARE = 0.3
SIMILARITY_SHARE = 0.35

Similarity = Callable[[str, str], float]
"""(sentence, quote) -> cosine."""
Entailment = Callable[[str, str], tuple[float, float]]
"""(quotes, sentence) -> probabilities that they entail it, and that they contradict it."""


@dataclass(frozen=True, slots=True)
class Support:
    """`support_score`: 0 to 1, comparable between sentences, no probability. `problems`: `kind:
    words` of problems.ProblemKind, hard ones first."""

    verdict: Verdict
    support_score: float
    problems: tuple[str, ...] = ()


def verify(
    sentence: str,
    quotes: Sequence[str],
    language: str,
    *,
    headings: Sequence[str] = (),
    similarity: Similarity | None = None,
    nli: Entailment | None = None,
) -> Support:
    """Whether the quotes, taken together, support the sentence.

    Pure; some milliseconds for usual quotes.

    Supported: a quote is the sentence itself; or they have `SUPPORTED_COVERAGE` of its content
    words and no check objects. Weak: `WEAK_COVERAGE`, or a soft objection, or nothing to check
    ("Yes."). Unsupported: less, or a hard objection: a number, unit, date or name that they do not
    have, a negation or an opposite.

    Args:
        sentence: without markers.
        quotes: verbatim quotes of what it cites.
        language: ISO 639-1 of the quotes, or `und`; numbers, negations and opposites are known in
            English and German.
        headings: titles and headings above the quotes. They supply names, years and words.
        similarity: lifts the coverage of what is said in other words.
        nli: an entailment model over the joined quotes.
    """
    if not any(quote.strip() for quote in quotes):
        return Support(Verdict.UNSUPPORTED, 0.0, (ProblemKind.NO_QUOTE.value,))
    if len(sentence) > MAX_SENTENCE_CHARS:
        return Support(Verdict.UNSUPPORTED, 0.0, (ProblemKind.TOO_LONG.value,))
    if _is_verbatim(sentence, quotes):
        return Support(Verdict.SUPPORTED, 1.0)
    claim = read_statement(sentence, language)
    stated = [read_statement(quote, language) for quote in quotes]
    above = [read_statement(heading, language) for heading in headings]
    known = frozenset(term for statement in (*stated, *above) for term in statement.terms)
    problems = _problems(claim, stated, above, known)
    covered = coverage(claim, known)
    nearest = max(coverage(claim, statement.terms) or 0.0 for statement in stated)
    strength = _strength(claim, known, nearest, problems)
    closest: float | None = None
    if similarity is not None:
        closest = min(max(0.0, *(similarity(sentence, quote) for quote in quotes)), 1.0)
        covered = None if covered is None else max(covered, (covered + closest) / 2)
    if nli is not None:
        entailed, contradicted = nli(" ".join(quotes), sentence)
        covered = None if covered is None else (covered + entailed) / 2
        strength = (strength + entailed) / 2
        if contradicted > max(entailed, 0.5):
            problems.append(Problem(ProblemKind.CONTRADICTED, ""))
    has_values = bool(claim.quantities or claim.dates)
    support = _support(1.0 if covered is None and has_values else covered, strength, problems)
    if closest is None:
        return support
    # After the objections: a check may misfire on what is said in other words.
    support_score = support.support_score
    support_score += SIMILARITY_SHARE * (closest - support_score)
    return replace(support, support_score=support_score)


def _is_verbatim(sentence: str, quotes: Sequence[str]) -> bool:
    """Whether a quote is the sentence, word for word and up to white space: nothing objects to
    that. A part of a quote may say something else than the whole of it."""
    words = sentence.split()
    return bool(words) and any(words == quote.split() for quote in quotes)


def _strength(
    claim: Statement, known: frozenset[str], nearest: float, problems: Sequence[Problem]
) -> float:
    """The share of the sentence's words and values that the quotes have, those of the nearest quote
    counting more; WEAK_COVERAGE for a sentence that has none."""
    found, total = weighed_words(claim, known)
    num_values = sum(not quantity.is_soft for quantity in claim.quantities) + len(claim.dates)
    objected = sum(1.0 if p.is_hard else 0.5 for p in problems if p.kind in VALUE_PROBLEMS)
    kept = max(num_values - objected, 0.0)
    if not total + num_values:
        return WEAK_COVERAGE
    together = (found + VALUE_WEIGHT * kept) / (total + VALUE_WEIGHT * num_values)
    return together + NEAREST_SHARE * (nearest - together) if total else together


def _problems(
    claim: Statement,
    stated: Sequence[Statement],
    above: Sequence[Statement],
    known: frozenset[str],
) -> list[Problem]:
    everything = [*stated, *above]
    quantities = [quantity for statement in stated for quantity in statement.quantities]
    loose: frozenset[Decimal] = frozenset(
        value for statement in everything for value in statement.loose_values
    ).union(Decimal(year) for heading in above for year in heading.lone_years)
    dates = [date for statement in everything for date in statement.dates]
    lone_years = frozenset(year for statement in everything for year in statement.lone_years)
    found = [
        *quantity_problems(claim.quantities, claim.tokens, quantities, loose),
        *date_problems(claim.dates, dates, lone_years),
        *name_problems(claim, everything),
        *polarity_problems(claim, stated),
        *assignment_problems(claim, stated),
    ]
    return found + [
        problem
        for problem in replacements(claim, stated, known)
        if not any(problem.text == other.text for other in found)
    ]


def _support(covered: float | None, strength: float, problems: Sequence[Problem]) -> Support:
    """`covered` None: there was nothing to check."""
    hard = [problem for problem in problems if problem.is_hard]
    soft = [problem for problem in problems if not problem.is_hard]
    factor = HARD_FACTOR ** min(len(hard), 2) * SOFT_FACTOR ** min(len(soft), 2)
    texts = tuple(str(problem) for problem in (*hard, *soft))
    if hard or (covered is not None and covered < WEAK_COVERAGE):
        verdict = Verdict.UNSUPPORTED
    elif soft or covered is None or covered < SUPPORTED_COVERAGE:
        verdict = Verdict.WEAK
    else:
        verdict = Verdict.SUPPORTED
    return Support(verdict, strength * factor, texts)
