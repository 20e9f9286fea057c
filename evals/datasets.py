"""The public data sets as pages, chunks and questions, in the product's own types.

They lie outside the repository (BEIR layout: corpus.jsonl, queries.jsonl, qrels.tsv); nothing of
them is committed. A passage longer than the embedder's limit becomes several chunks of one page, so
relevance is kept by the passage's id, which is the page's document id.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.domain.pages import Chunk, SourceSpan
from core.ids import generation_id, point_id
from core.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

XQUAD_ARTICLE = 5  # passages
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w’'-]+(?: [A-Z0-9][\w’'-]*)*")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "retrieval"
# About 200 word pieces of an English model.
_CHUNK_CHARS = {"en": 850, "de": 550}
_SHORTEST_CHUNK_CHARS = 300


@dataclass(frozen=True, slots=True)
class EvalChunk:
    point_id: str
    document_id: str  # the data set's passage id
    generation_id: str
    title: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """`relevant` maps document ids (chunk ids where `by_chunk`) to gains. `answers` are strings of
    the evidence; `label` is the data set's own word for answerability."""

    id: str
    text: str
    relevant: dict[str, float]
    answers: tuple[str, ...] = ()
    label: str = ""
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    language: str
    chunks: list[EvalChunk]
    questions: list[EvalQuestion]
    texts: dict[str, str] = field(default_factory=dict)  # document id -> page text


def read_beir(
    name: str, *, language: str = "en", split: str = "", whole: bool = False, root: Path = DATA
) -> DataSet:
    """A data set in BEIR layout. `split` names other queries and qrels (`train`, for scifact).

    `whole` keeps each passage one chunk, as published figures do, though the embedder then reads
    only the beginning of long ones.
    """
    folder = root / name
    suffix = f"_{split}" if split else ""
    relevant = read_qrels(folder / f"qrels{suffix}.tsv")
    questions = [
        EvalQuestion(
            id=row["_id"],
            text=row["text"],
            relevant=relevant.get(row["_id"], {}),
            answers=tuple(row.get("answers", ())),
            label=row.get("answerability", ""),
            history=tuple(text for role, text in row.get("history", ()) if role == "user"),
        )
        for row in read_lines(folder / f"queries{suffix}.jsonl")
    ]
    return _data_set(name, language, read_lines(folder / "corpus.jsonl"), questions, whole=whole)


def read_mtrag_v1(*, rewritten: bool, root: Path = DATA) -> DataSet:
    """The v1 questions (last turn, or their gold rewrite) over the pool of mtrag-un."""
    folder = root / ("mtrag-v1-rewrite" if rewritten else "mtrag-v1-lastturn")
    relevant = read_qrels(folder / "qrels.tsv")
    questions = [
        EvalQuestion(row["_id"], row["text"], relevant.get(row["_id"], {}))
        for row in read_lines(folder / "queries.jsonl")
    ]
    return _data_set(folder.name, "en", read_lines(root / "mtrag-un" / "corpus.jsonl"), questions)


def read_chunking_eval(root: Path = DATA) -> DataSet:
    """Five long texts cut into chunks; a chunk is relevant when a reference touches it, so the
    "documents" here are single chunks."""
    folder = root / "chunking_eval"
    chunks: list[EvalChunk] = []
    bounds: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    texts: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for start, end in _windows(text, "en"):
            name = f"{path.stem}:{start}"
            bounds[path.stem].append((start, end, name))
            texts[name] = text[start:end]
            chunks.extend(_chunks(name, "", text[start:end], "en", [(0, end - start)]))
    questions: list[EvalQuestion] = []
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            references = json.loads(row["references"])
            relevant = {
                name: 1.0
                for start, end, name in bounds[row["corpus_id"]]
                for reference in references
                if reference["start_index"] < end and reference["end_index"] > start
            }
            answers = tuple(reference["content"] for reference in references)
            questions.append(EvalQuestion(f"ce{number}", row["question"], relevant, answers))
    return DataSet("chunking_eval", "en", chunks, questions, texts)


def with_titles(data: DataSet) -> DataSet:
    """XQuAD's passages under a title: the two names that the five passages of an article hold most.

    Documents have titles and headings; the data set dropped its articles', so that a passage on a
    game does not say which game. Without them every name would seem to matter little.
    """
    articles: dict[int, list[str]] = defaultdict(list)
    for document_id in data.texts:
        articles[int(document_id.removeprefix("p")) // XQUAD_ARTICLE].append(document_id)
    chunks: list[EvalChunk] = []
    for members in articles.values():
        held = Counter(name for m in members for name in set(_NAME.findall(data.texts[m])))
        title = ", ".join(name for name, _ in held.most_common(2))
        for document_id in members:
            text = data.texts[document_id]
            chunks.extend(chunks_of(document_id, title, text, data.language))
    return replace(data, chunks=chunks)


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        question, document, gain = line.split("\t")
        if float(gain) > 0:
            found[question][document] = float(gain)
    return dict(found)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _data_set(
    name: str,
    language: str,
    corpus: Iterable[dict[str, Any]],
    questions: list[EvalQuestion],
    *,
    whole: bool = False,
) -> DataSet:
    chunks: list[EvalChunk] = []
    texts: dict[str, str] = {}
    for row in corpus:
        texts[row["_id"]] = row["text"]
        bounds = [(0, len(row["text"]))] if whole else _windows(row["text"], language)
        chunks.extend(_chunks(row["_id"], row.get("title") or "", row["text"], language, bounds))
    return DataSet(name, language, chunks, questions, texts)


def _chunks(
    document_id: str, title: str, text: str, language: str, bounds: list[tuple[int, int]]
) -> list[EvalChunk]:
    generation = generation_id(document_id, 1, "evals")
    found: list[EvalChunk] = []
    for ordinal, (start, end) in enumerate(bounds):
        body = text[start:end]
        chunk = Chunk(
            ordinal=ordinal,
            text=body,
            heading_path=(),
            index_text=f"{title}\n{body}" if title else body,
            spans=(SourceSpan(1, start, end, 0, len(body)),),
            language=language,
            num_tokens=len(body.split()),
        )
        point = point_id(generation, ordinal)
        found.append(EvalChunk(point, document_id, generation, title, chunk))
    return found


def chunks_of(document_id: str, title: str, text: str, language: str) -> list[EvalChunk]:
    """A text of our own as chunks of one document."""
    return _chunks(document_id, title, text, language, _windows(text, language))


def _windows(text: str, language: str) -> list[tuple[int, int]]:
    """Whole sentences packed up to about the embedder's limit for that language."""
    limit = _CHUNK_CHARS.get(language, _SHORTEST_CHUNK_CHARS)
    found: list[tuple[int, int]] = []
    first, last = 0, 0
    for start, end in sentences(text):
        if last > first and end - first > limit:
            found.append((first, last))
            first = start
        elif last == first:
            first = start
        last = end
    if last > first:
        found.append((first, last))
    return found
