"""Whether a written sentence says what its quotes say, and which quote each citation shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core.domain.answers import Verdict
from query.answers.quotes import Quote
from query.answers.verification import Support, verify
from query.answers.writing.given import GivenPassage
from query.answers.written_sentences import WrittenSentence

__all__ = ["Cited", "Judged", "judge"]

_ORDER = {Verdict.SUPPORTED: 2, Verdict.WEAK: 1, Verdict.UNSUPPORTED: 0}


class Verify(Protocol):
    """`query.answers.verification.verify`, or a test's stand-in."""

    def __call__(
        self, sentence: str, quotes: Sequence[str], language: str, *, headings: Sequence[str]
    ) -> Support: ...


@dataclass(frozen=True, slots=True)
class Cited:
    """What one citation of a sentence shows, and how far that alone supports the sentence.

    quotes: of the passage; one, or two where only two together say what the sentence does.
    """

    passage: GivenPassage
    quotes: tuple[Quote, ...]
    verdict: Verdict
    support_score: float


@dataclass(frozen=True, slots=True)
class Judged:
    """`cited` in the order of the sentence's numbers."""

    verdict: Verdict
    support_score: float
    cited: tuple[Cited, ...]


def judge(
    sentence: WrittenSentence, given: Sequence[GivenPassage], verify: Verify = verify
) -> Judged:
    """The verdict on a sentence against the quotes that it cites.

    One that cites nothing is held against everything that was given, and is at best weak: nobody
    can look it up. Of quotes that support a sentence only together, none is told to support less
    than weakly.
    """
    passages = [given[number - 1] for number in sentence.cited]
    if not passages:
        support = _check(sentence.text, [q for p in given for q in p.quotes], given, verify)
        verdict = min(support.verdict, Verdict.WEAK, key=_ORDER.__getitem__)
        return Judged(verdict, support.support_score, ())
    alone = [_best(sentence.text, passage, verify) for passage in passages]
    if len(alone) == 1:
        return Judged(alone[0].verdict, alone[0].support_score, tuple(alone))
    shown = [quote for one in alone for quote in one.quotes]
    together = _check(sentence.text, shown, passages, verify)
    if together.verdict is Verdict.UNSUPPORTED:
        return Judged(together.verdict, together.support_score, tuple(alone))
    if all(one.verdict is not Verdict.SUPPORTED for one in alone):
        alone = [
            replace(one, verdict=max(one.verdict, Verdict.WEAK, key=_ORDER.__getitem__))
            for one in alone
        ]
    return Judged(together.verdict, together.support_score, tuple(alone))


def _best(text: str, passage: GivenPassage, verify: Verify) -> Cited:
    """The quote of the passage that supports the text most, of equals the first; or that and the
    one which supports it better together with it."""
    best = max((_try(text, passage, (quote,), verify) for quote in passage.quotes), key=_strength)
    others = [quote for quote in passage.quotes if quote not in best.quotes]
    if best.verdict is Verdict.SUPPORTED or not others:
        return best
    pair = max(
        (_try(text, passage, (*best.quotes, other), verify) for other in others), key=_strength
    )
    return pair if _ORDER[pair.verdict] > _ORDER[best.verdict] else best


def _try(text: str, passage: GivenPassage, quotes: tuple[Quote, ...], verify: Verify) -> Cited:
    support = _check(text, quotes, [passage], verify)
    return Cited(passage, quotes, support.verdict, support.support_score)


def _strength(cited: Cited) -> tuple[int, float]:
    return _ORDER[cited.verdict], cited.support_score


def _check(
    text: str, quotes: Sequence[Quote], passages: Sequence[GivenPassage], verify: Verify
) -> Support:
    return verify(
        text,
        [quote.text for quote in quotes],
        passages[0].language,
        headings=[passage.label for passage in passages],
    )
