"""Retrieval figures on the public data sets, through the product's own search.

    python -m evals.retrieval [--sets scifact-train,xquad-de,...] [--models-dir DIR] [--cache DIR]

One row a configuration: the legs alone, both fusions, and reranking by best sentence. Passages are
ranked by their best chunk. `scifact-test` is read once, at the end of a change; tune on
`scifact-train`. Sets without an English text are searched by words alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.search import SearchFilter
from core.factory import system_clock
from core.settings import RetrievalSettings, load_settings
from evals.datasets import DataSet, read_beir, read_mtrag_v1
from evals.embedding import CachedEmbedder, open_embedder
from evals.memory_index import PRINCIPAL, EverythingActive, MemoryIndex
from evals.metrics import interval, ndcg, recall
from query.retrieval.reranking import rerank
from query.retrieval.search import RetrievalDeps, retrieve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.ports.models import Embedder

SETS: dict[str, Callable[[], DataSet]] = {
    "scifact-train": lambda: read_beir("scifact", split="train", whole=True),
    "scifact-test": lambda: read_beir("scifact", whole=True),
    "xquad-en": lambda: read_beir("xquad-en"),
    "xquad-de": lambda: read_beir("xquad-de", language="de"),
    "xquad-ru": lambda: read_beir("xquad-ru", language="ru"),
    "xquad-zh": lambda: read_beir("xquad-zh", language="zh"),
    "xquad-hi": lambda: read_beir("xquad-hi", language="hi"),
    "mtrag-v1-last-turn": lambda: read_mtrag_v1(rewritten=False),
    "mtrag-v1-rewrite": lambda: read_mtrag_v1(rewritten=True),
    "mtrag-un": lambda: read_beir("mtrag-un"),
}
_DEFAULT = "scifact-train,xquad-en,xquad-de,xquad-ru,xquad-zh,xquad-hi,mtrag-v1-rewrite,mtrag-un"
_WORDS_ONLY = frozenset({"ru", "zh", "hi"})
_BASELINE = "dbsf"


@dataclass(frozen=True, slots=True)
class Configuration:
    name: str
    settings: RetrievalSettings
    is_reranked: bool = False


CONFIGURATIONS: tuple[Configuration, ...] = (
    Configuration("lexical", RetrievalSettings(legs="lexical", rerank_passages=0)),
    Configuration("dense", RetrievalSettings(legs="dense", rerank_passages=0)),
    Configuration("rrf", RetrievalSettings(fusion="rrf", rerank_passages=0)),
    Configuration(_BASELINE, RetrievalSettings(rerank_passages=0)),
    Configuration("reranked", RetrievalSettings(), is_reranked=True),
)


def main() -> None:
    options = _options()
    embedder = CachedEmbedder(open_embedder(options.models_dir), options.cache)
    print("| set | questions | | nDCG@10 | R@5 | R@20 | R@100 | nDCG@10 against dbsf |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.sets.split(","):
        data = SETS[name]()
        questions = [question for question in data.questions if question.relevant]
        data.questions[:] = questions[: options.questions or None]
        is_wordy = data.language in _WORDS_ONLY
        index = MemoryIndex(
            data, embedder, has_vectors=not is_wordy, has_sentences=options.reranking
        )
        chosen = CONFIGURATIONS[:1] if is_wordy else CONFIGURATIONS
        chosen = tuple(c for c in chosen if options.reranking or not c.is_reranked)
        for line in _rows(name, index, embedder, chosen):
            print(line, flush=True)


def _options() -> argparse.Namespace:
    settings = load_settings()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", default=_DEFAULT, help=f"of {', '.join(SETS)}")
    parser.add_argument("--no-reranking", dest="reranking", action="store_false")
    parser.add_argument("--questions", type=int, default=0, help="the first so many; 0: all")
    parser.add_argument("--models-dir", type=Path, default=settings.models_dir / "minilm")
    parser.add_argument("--cache", type=Path, default=settings.data_dir / "evals")
    return parser.parse_args()


def _rows(
    name: str, index: MemoryIndex, embedder: Embedder, configurations: Sequence[Configuration]
) -> list[str]:
    questions = index.data.questions
    rankings = {
        configuration.name: [
            _ranking(index, embedder, configuration, question.text) for question in questions
        ]
        for configuration in configurations
    }
    gains = {
        configuration: [
            ndcg(ranking, question.relevant)
            for ranking, question in zip(found, questions, strict=True)
        ]
        for configuration, found in rankings.items()
    }
    rows = []
    for configuration, found in rankings.items():
        recalls = [
            _mean([recall(r, q.relevant, depth) for r, q in zip(found, questions, strict=True)])
            for depth in (5, 20, 100)
        ]
        against = _against(gains[configuration], gains.get(_BASELINE), configuration)
        figures = " | ".join(f"{value:.4f}" for value in (_mean(gains[configuration]), *recalls))
        rows.append(f"| {name} | {len(questions)} | {configuration} | {figures} | {against} |")
    return rows


def _ranking(
    index: MemoryIndex, embedder: Embedder, configuration: Configuration, question: str
) -> list[str]:
    """Passage ids of the data set, best first, each once."""
    deps = RetrievalDeps(index, embedder, system_clock(), configuration.settings)
    (found,), _ = retrieve(PRINCIPAL, [question], SearchFilter(), EverythingActive(), deps)
    passages = found.passages
    if configuration.is_reranked:
        (reranked,) = rerank([found], num_passages=configuration.settings.rerank_passages)
        passages = reranked.passages
    return list(dict.fromkeys(passage.document_id for passage in passages))


def _against(gains: Sequence[float], baseline: Sequence[float] | None, name: str) -> str:
    """Mean paired difference with its 95 % interval."""
    if baseline is None or name == _BASELINE:
        return ""
    differences = [a - b for a, b in zip(gains, baseline, strict=True)]
    low, high = interval(differences)
    return f"{_mean(differences):+.4f} [{low:+.4f}, {high:+.4f}]"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
