"""Questions with and without their answer in the documents, measured by the product's own code.

A data set says which passage answers a question. Taking that away gives questions that nothing
answers, in three degrees: `cut` removes only the sentences with the answer, so that names and topic
still occur; `gone` removes the passage, `topic` the whole article around it; `foreign` asks
questions of other data sets. Labels of `gone` are noisy where passages repeat each other.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.search import SearchFilter
from core.factory import system_clock
from core.ids import generation_id
from core.lexical.words import normal_form, words
from core.sentences import sentences
from core.settings import RetrievalSettings
from evals.datasets import XQUAD_ARTICLE, DataSet, EvalQuestion, chunks_of
from evals.memory_index import PRINCIPAL, EverythingActive, MemoryIndex
from query.answers.answerability import Signals, measure
from query.answers.evidence import Evidence, choose_evidence
from query.retrieval.questions import analyse
from query.retrieval.reranking import Reranked, rerank
from query.retrieval.search import RetrievalDeps, retrieve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.ports.models import Embedder

PARAPHRASES = Path(__file__).with_name("paraphrases.jsonl")
_MAX_QUOTES = 3


@dataclass(frozen=True, slots=True)
class Example:
    """One question under one condition. `condition` is `answerable` or why it is not.

    `has_answer`: whether a chosen quote holds one of the question's answers; `has_page`: whether
    one comes from a relevant passage. Both False where there is no answer.
    """

    group: str
    condition: str
    question_id: str
    signals: Signals
    num_quotes: int
    has_answer: bool
    has_page: bool

    @property
    def is_answerable(self) -> bool:
        return self.condition == "answerable"


class Bench:
    """The walk of a question up to its evidence, over one data set."""

    def __init__(self, data: DataSet, embedder: Embedder) -> None:
        self.data = data
        self.settings = RetrievalSettings()
        index = MemoryIndex(data, embedder)
        self._deps = RetrievalDeps(index, embedder, system_clock(), self.settings)

    def ask(self, question: str, hidden: Iterable[str] = ()) -> Reranked:
        """Rerank what is found without the generations in `hidden`."""
        (found,), _ = retrieve(
            PRINCIPAL,
            [question],
            SearchFilter(excluded_generation_ids=tuple(hidden)),
            EverythingActive(),
            self._deps,
        )
        (reranked,) = rerank([found], num_passages=self.settings.rerank_passages)
        return reranked

    def example(
        self, group: str, condition: str, question: EvalQuestion, hidden: Iterable[str] = ()
    ) -> Example | None:
        """None where nothing at all was found."""
        reranked = self.ask(question.text, hidden)
        evidence = choose_evidence(reranked, _MAX_QUOTES)
        if not evidence:
            return None
        return Example(
            group,
            condition,
            question.id,
            measure(reranked, evidence[0]),
            len(evidence),
            any(holds_answer(item, question) for item in evidence),
            any(item.passage.document_id in question.relevant for item in evidence),
        )


def holds_answer(evidence: Evidence, question: EvalQuestion) -> bool:
    """Whether the quote holds an answer, or is (most of) a long one."""
    text = evidence.text.lower()
    return any(
        answer.lower() in text or (len(text) > 25 and text in answer.lower())
        for answer in question.answers
    )


def with_and_without(
    data: DataSet, embedder: Embedder, num_questions: int, *, has_articles: bool = False
) -> Iterator[Example]:
    """`answerable`, `cut`, `gone` (and `topic`) of questions drawn with a fixed seed."""
    asked = [q for q in data.questions if q.relevant and q.answers]
    asked = random.Random(1).sample(asked, min(num_questions, len(asked)))
    cut = {question.id: _cut(data, question) for question in asked}
    every_cut = {name for names in cut.values() for name in names}
    bench = Bench(data, embedder)
    for question in asked:
        gold = {generation_id(name, 1, "evals") for name in question.relevant}
        conditions = {"answerable": every_cut, "gone": every_cut | gold}
        if cut[question.id]:
            conditions["cut"] = (every_cut - cut[question.id]) | gold
        if has_articles:
            conditions["topic"] = every_cut | _article(question)
        for condition, hidden in conditions.items():
            found = bench.example(data.name, condition, question, hidden)
            if found is not None:
                yield found


def swapped(data: DataSet, embedder: Embedder, num_questions: int) -> Iterator[Example]:
    """Questions that are answered, asked of another name or number: the right thing about the wrong
    one. The name comes from another question and is not in the passage."""
    generator = random.Random(11)
    asked = [q for q in data.questions if q.relevant and _named(q.text)]
    names = [name for question in asked for name in _named(question.text)]
    indexed: dict[str, str] = {}
    for item in data.chunks:
        indexed[item.document_id] = (
            indexed.get(item.document_id, "") + item.chunk.index_text.casefold()
        )
    bench = Bench(data, embedder)
    for question in generator.sample(asked, min(num_questions, len(asked))):
        gold = " ".join(indexed[name] for name in question.relevant)
        own = [name for name in _named(question.text) if name.casefold() in gold]
        if not own:
            continue
        old = generator.choice(own)
        others = [
            name
            for name in names
            if name.casefold() not in gold and _has_digit(name) == _has_digit(old)
        ]
        text = question.text.replace(old, generator.choice(others), 1)
        found = bench.example(data.name, "swapped", EvalQuestion(question.id, text, {}))
        if found is not None:
            yield found


def _named(question: str) -> list[str]:
    """The tokens of a question that are names or numbers, without punctuation around them."""
    names = {word.text for word in analyse(question).names}
    tokens = (token.strip("?,.;:\"'()") for token in question.split())
    return [t for t in tokens if (spoken := set(words(normal_form(t)))) and spoken <= names]


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def with_and_without_passages(data: DataSet, embedder: Embedder) -> Iterator[Example]:
    """`answerable` and `gone`, for data sets that name passages but no answers."""
    bench = Bench(data, embedder)
    for question in data.questions:
        if question.relevant:
            gold = {generation_id(name, 1, "evals") for name in question.relevant}
            for condition, hidden in (("answerable", set[str]()), ("gone", gold)):
                found = bench.example(data.name, condition, question, hidden)
                if found is not None:
                    yield found


def foreign(
    data: DataSet, embedder: Embedder, questions: Sequence[EvalQuestion], num_questions: int
) -> Iterator[Example]:
    """Questions of other data sets."""
    bench = Bench(data, embedder)
    for question in random.Random(3).sample(list(questions), num_questions):
        found = bench.example(data.name, "foreign", question)
        if found is not None:
            yield found


def labelled(data: DataSet, embedder: Embedder, labels: dict[str, str]) -> Iterator[Example]:
    """Questions that people labelled; `labels` maps the data set's words to conditions."""
    bench = Bench(data, embedder)
    for question in data.questions:
        if question.label in labels:
            found = bench.example(data.name, labels[question.label], question)
            if found is not None:
                yield found


def paraphrases(data: DataSet, embedder: Embedder) -> Iterator[Example]:
    """Our own questions about xquad's English passages: answerable ones in other words than the
    passage's, and ones about names that occur where nothing answers (`named`)."""
    bench = Bench(data, embedder)
    for line in PARAPHRASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        is_answerable = "passage" in row
        question = EvalQuestion(
            row["id"],
            row["question"],
            {row["passage"]: 1.0} if is_answerable else {},
            (row["answer"],) if is_answerable else (),
        )
        condition = "answerable" if is_answerable else "named"
        found = bench.example("paraphrases", condition, question)
        if found is not None:
            yield found


def _cut(data: DataSet, question: EvalQuestion) -> set[str]:
    """Add the relevant passages without the sentences of the answer; the new generations."""
    added: set[str] = set()
    for name in question.relevant:
        text = data.texts[name]
        kept = [text[s:e] for s, e in sentences(text) if not _answers(text[s:e], question)]
        if kept:
            chunks = chunks_of(f"{question.id}~{name}", "", " ".join(kept), data.language)
            data.chunks.extend(chunks)
            added.update(chunk.generation_id for chunk in chunks)
    return added


def _answers(sentence: str, question: EvalQuestion) -> bool:
    text = sentence.lower().strip()
    return any(
        answer.lower() in text or text in answer.lower() or answer.lower()[:40] in text
        for answer in question.answers
    )


def _article(question: EvalQuestion) -> set[str]:
    names: set[str] = set()
    for name in question.relevant:
        first = int(name.removeprefix("p")) // XQUAD_ARTICLE * XQUAD_ARTICLE
        names |= {f"p{number}" for number in range(first, first + XQUAD_ARTICLE)}
    return {generation_id(name, 1, "evals") for name in names}
