"""One answer of a generator, judged by its labels and by the product's own checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from core.domain.answers import Verdict
from query.answers.markers import MarkerFilter
from query.answers.verification import verify
from query.answers.written_sentences import SentenceAssembler, WrittenSentence
from query.gate.suite import GateQuestion

_MAX_SENTENCES = 5
_LEFT_MARKER = regex.compile(r"[\[［【]\s*\d{1,3}(?:\s*[,;-]\s*\d{1,3})*\s*[\]］】]")  # noqa: RUF001
_OF_THE_PROMPT = regex.compile(r"^\s*(?:Passages|Question|Answer)\s*:|<\|?\w+\|?>", regex.M)
_ACTIVE = regex.compile(r"!\[|\]\(|<\w+[ >/]|```")
_TOLD = (
    r"(?:say|said|state|stated|mention|mentioned|specify|specified|give|given|provide|provided"
    r"|contain|contained|include|included|answer|answered|tell|told|available|known|found|indicate"
    r"|indicated|disclose|disclosed|information|described|describe|determine|determined)"
)
_REFUSAL = regex.compile(
    rf"\b(?:not|n't|n’t|cannot)\b[^.]{{0,60}}\b{_TOLD}\b"
    r"|\bno (?:information|mention|answer|passage|details?|indication|data)\b"
    r"|\bnone of the passages\b"
    r"|\b(?:unknown|insufficient information|don't know|do not know)\b"
    r"|\bnicht\b[^.]{0,60}\b(?:angegeben|genannt|erwähnt|hervor|beantwort\w*|enthalten|bekannt"
    r"|ersichtlich|gesagt|aufgeführt)\b|\bkeine (?:angaben?|information(?:en)?|auskunft|aussage)\b"
    r"|\b(?:beantworten|nennen|sagen|enthalten)\b[^.]{0,60}\b(?:nicht|nichts|keine)\b",
    regex.IGNORECASE,
)
_GROUPS = regex.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}(?!\d))")
_DASHES = regex.compile(r"[\u2010-\u2015\u2212]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one answer was like. `problems`: of its form, empty for a well-formed one."""

    question_id: str
    kind: str
    text: str
    is_right: bool
    num_sentences: int
    num_supported: int
    num_unsupported: int
    num_citations: int
    num_right_citations: int
    num_structural_errors: int
    problems: tuple[str, ...]


def judge(question: GateQuestion, text: str, *, is_complete: bool) -> Outcome:
    """Judge the generator's whole text. `is_complete`: it stopped by itself."""
    written = read_sentences_of(text, len(question.evidence))
    verdicts = [_verdict(sentence, question) for sentence in written]
    citations = [number for sentence in written for number in sentence.cited]
    counts = question.is_answerable
    return Outcome(
        question_id=question.id,
        kind=question.kind,
        text=text,
        is_right=_is_answered(question, written) if counts else _is_refused(question, written),
        num_sentences=len(written) if counts else 0,
        num_supported=verdicts.count(Verdict.SUPPORTED) if counts else 0,
        num_unsupported=verdicts.count(Verdict.UNSUPPORTED) if counts else 0,
        num_citations=len(citations) if counts else 0,
        num_right_citations=sum(n in question.answering for n in citations) if counts else 0,
        num_structural_errors=_structural_errors(written, len(question.evidence)),
        problems=tuple(_form_problems(question, text, written, is_complete=is_complete)),
    )


def read_sentences_of(text: str, num_passages: int) -> list[WrittenSentence]:
    """The text as the product reads it."""
    markers, assembler = MarkerFilter(num_passages), SentenceAssembler()
    items = [*markers.push(text), *markers.end()]
    return [s for item in items for s in assembler.push(item)] + assembler.end()


def _verdict(sentence: WrittenSentence, question: GateQuestion) -> Verdict:
    """Against what it cites; without a citation against everything, and then at best weak."""
    evidence = [question.evidence[number - 1] for number in sentence.cited]
    titles = sorted({title for title, _ in question.evidence})
    quotes = [text for _, text in evidence or question.evidence]
    verdict = verify(sentence.text, quotes, question.language, headings=titles).verdict
    return Verdict.WEAK if verdict is Verdict.SUPPORTED and not evidence else verdict


def _is_answered(question: GateQuestion, written: Sequence[WrittenSentence]) -> bool:
    """Every wanted value is there, no other leads, and evidence that answers is cited."""
    said = _normal(" ".join(sentence.text for sentence in written))
    first = _normal(written[0].text) if written else ""
    cited = {number for sentence in written for number in sentence.cited}
    return (
        all(any(_holds(said, value) for value in group) for group in question.must)
        and not any(_holds(first, value) for value in question.must_not)
        and not cited.isdisjoint(question.answering)
    )


def _is_refused(question: GateQuestion, written: Sequence[WrittenSentence]) -> bool:
    """Nothing was written, or that there is no answer; and no value was made up."""
    said = " ".join(sentence.text for sentence in written)
    if any(_holds(_normal(said), value) for value in question.must_not):
        return False
    return not written or _REFUSAL.search(said) is not None


def _structural_errors(written: Sequence[WrittenSentence], num_passages: int) -> int:
    return sum(
        sum(not 1 <= number <= num_passages for number in sentence.cited)
        + len(_LEFT_MARKER.findall(sentence.text))
        for sentence in written
    )


def _form_problems(
    question: GateQuestion, text: str, written: Sequence[WrittenSentence], *, is_complete: bool
) -> list[str]:
    problems: list[str] = []
    if not is_complete:
        problems.append("cut_off")
    if question.is_answerable and not written:
        problems.append("empty")
    if len(written) > _MAX_SENTENCES:
        problems.append("long")
    if question.is_answerable and any(not sentence.cited for sentence in written):
        problems.append("uncited")
    if len({sentence.text.casefold() for sentence in written}) < len(written):
        problems.append("repeated")
    if _OF_THE_PROMPT.search(text):
        problems.append("prompt")
    if _ACTIVE.search(text):
        problems.append("markup")
    return problems


def _normal(text: str) -> str:
    text = _DASHES.sub("-", text.replace("\u2019", "'"))
    return " ".join(_GROUPS.sub("", text).casefold().split())


def _holds(said: str, value: str) -> bool:
    """Whether the words hold a value by itself: "5 mg" is not in "15 mg" nor in "0.5 mg"."""
    wanted = regex.escape(_normal(value))
    return regex.search(rf"(?<!\w|\d[.,]){wanted}(?![\w]|[.,]\d)", said) is not None
