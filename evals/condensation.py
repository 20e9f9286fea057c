"""Follow-ups on MTRAG: searching the last turn, the last two, all of them, or what we condense.

    python -m evals.condensation [--models-dir DIR] [--cache DIR]

mtrag-un brings its history; that of mtrag-v1 is put together from the earlier turns of the same
conversation that are in the set. No rule may be fitted to one of the two.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.generation import ChatMessage
from core.domain.search import SearchFilter
from core.factory import system_clock
from core.settings import RetrievalSettings, load_settings
from evals.datasets import read_beir, read_mtrag_v1
from evals.embedding import CachedEmbedder, open_embedder
from evals.memory_index import PRINCIPAL, EverythingActive, MemoryIndex
from evals.metrics import interval, ndcg
from query.retrieval.condensation import condense
from query.retrieval.search import RetrievalDeps, retrieve

if TYPE_CHECKING:
    from collections.abc import Callable

    from evals.datasets import DataSet, EvalQuestion


def _condensed(question: EvalQuestion) -> str:
    return condense(question.text, [ChatMessage("user", h) for h in _earlier(question)]).query


def _earlier(question: EvalQuestion) -> tuple[str, ...]:
    """The history without the last turn, where the data set repeats it."""
    history = question.history
    return history[:-1] if history and history[-1].strip() == question.text.strip() else history


VARIANTS: dict[str, Callable[[EvalQuestion], str]] = {
    "last turn": lambda question: question.text,
    "last two turns": lambda question: " ".join((*_earlier(question)[-1:], question.text)),
    "all turns": lambda question: " ".join((*_earlier(question), question.text)),
    "condensed": _condensed,
}


def main() -> None:
    settings = load_settings()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models-dir", type=Path, default=settings.models_dir / "minilm")
    parser.add_argument("--cache", type=Path, default=settings.data_dir / "evals")
    options = parser.parse_args()
    embedder = CachedEmbedder(open_embedder(options.models_dir), options.cache)
    print("| set | questions | changed | | nDCG@10 | against last turn |")
    print("|---|---|---|---|---|---|")
    for data in (read_beir("mtrag-un"), _with_history(read_mtrag_v1(rewritten=False))):
        asked = [question for question in data.questions if question.relevant]
        index = MemoryIndex(data, embedder, has_vectors=True, has_sentences=False)
        deps = RetrievalDeps(index, embedder, system_clock(), RetrievalSettings(rerank_passages=0))
        baseline: list[float] = []
        for name, query_of in VARIANTS.items():
            queries = [query_of(question) for question in asked]
            gains = [
                ndcg(_ranking(deps, query), question.relevant)
                for query, question in zip(queries, asked, strict=True)
            ]
            baseline = baseline or gains
            changed = sum(
                query != " ".join(q.text.split()) and query != q.text
                for query, q in zip(queries, asked, strict=True)
            )
            low, high = interval([a - b for a, b in zip(gains, baseline, strict=True)])
            mean = sum(gains) / len(gains)
            print(
                f"| {data.name} | {len(asked)} | {changed} | {name} | {mean:.4f} "
                f"| [{low:+.3f}, {high:+.3f}] |"
            )


def _ranking(deps: RetrievalDeps, query: str) -> list[str]:
    (found,), _ = retrieve(PRINCIPAL, [query], SearchFilter(), EverythingActive(), deps)
    return list(dict.fromkeys(passage.document_id for passage in found.passages))


def _with_history(data: DataSet) -> DataSet:
    """Ids are `conversation<::>turn`."""
    turns: dict[str, dict[int, str]] = {}
    for question in data.questions:
        name, _, turn = question.id.partition("<::>")
        turns.setdefault(name, {})[int(turn)] = question.text
    return replace(
        data,
        questions=[
            replace(
                question,
                history=tuple(
                    text
                    for turn, text in sorted(turns[question.id.partition("<::>")[0]].items())
                    if turn < int(question.id.partition("<::>")[2])
                ),
            )
            for question in data.questions
        ],
    )


if __name__ == "__main__":
    main()
