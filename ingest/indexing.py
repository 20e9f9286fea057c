"""Embed, index and activate: from stored chunks to points that a question can find.

Points carry their generation, so that writing them shows nothing to anybody: only the catalog's
flip in `activate` does, after the points were counted. Everything can be run again: vectors are
stored by the text they belong to, points have ids that depend on (generation, ordinal) alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.chunk_sentences import chunk_sentences
from core.domain.documents import NewPart, PartResult, Stage
from core.domain.pipeline import INDEX_SCHEMA
from core.domain.search import IndexManifest, IndexPoint
from core.errors import InternalError, NotFound
from core.ids import point_id
from core.lexical.bm25 import analyser_fingerprint, count_terms, encode_document
from core.logging import get_logger
from core.sentence_vectors import pack
from ingest.batching import chunk_parts, vector_groups
from ingest.stages import load_chunks, load_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.chunk_sentences import ChunkSentence
    from core.domain.pages import Chunk
    from core.domain.search import EmbedderInfo, SentenceVectors
    from ingest.part_run import PartRun

_SENTENCES_AT_ONCE = 32  # as many tokens as a few chunks have
_log = get_logger(__name__)


def embed(run: PartRun) -> PartResult:
    """Vectors of chunks first..last, stored."""
    chunks = load_chunks(run)
    ensure_manifest(run, chunks)  # a mismatch is found before the work, not after it
    for group in vector_groups(run.part.first, run.part.last, len(chunks)):
        run.checkpoint()
        _embedded(run, [chunks[ordinal] for ordinal in group])
    size = run.deps.settings.worker.index_chunks_per_part
    return PartResult(next_stage=chunk_parts(Stage.INDEX, len(chunks), size))


def index(run: PartRun) -> PartResult:
    """Points of chunks first..last, durable in the index."""
    chunks = load_chunks(run)
    _write_points(run, chunks, run.part.first, run.part.last)
    return PartResult(next_stage=(NewPart(Stage.ACTIVATE, 0, 0),))


def activate(run: PartRun) -> None:
    """Count the points and flip the document to this generation; the catalog completes the part.

    When points are missing (an index that lost its last writes) they are written again, once.
    Raises InternalError when the count is still wrong.
    """
    deps, part = run.deps, run.part
    chunks = load_chunks(run)
    num_points = deps.vector_index.count(run.principal, part.document_id, part.generation_id)
    if num_points != len(chunks):
        _log.warning("index.points_differ", num_points=num_points, num_chunks=len(chunks))
        if num_points > len(chunks):
            deps.vector_index.delete_generation(run.principal, part.document_id, part.generation_id)
        _write_points(run, chunks, 0, len(chunks) - 1)
        num_points = deps.vector_index.count(run.principal, part.document_id, part.generation_id)
    is_active = deps.catalog.parts.activate(run.part, num_points=num_points)
    _log.info("generation.active" if is_active else "generation.superseded", num_points=num_points)


def ensure_manifest(run: PartRun, chunks: Sequence[Chunk]) -> IndexManifest:
    """The index's manifest, created for the first document.

    Raises ManifestMismatch when the index belongs to another embedder, analyser or schema.
    """
    info = run.deps.embedder.info()
    average = run.deps.catalog.operations.average_terms()
    if average is None:  # the first document of all stands for those to come
        lengths = [count_terms(chunk.index_text, chunk.language) for chunk in chunks]
        average = max(1.0, sum(lengths) / len(lengths))
    return run.deps.vector_index.ensure(
        IndexManifest(
            embedder_fingerprint=info.fingerprint,
            dimension=info.dimension,
            analyser_fingerprint=analyser_fingerprint(),
            schema=INDEX_SCHEMA,
            average_terms=average,
        )
    )


def take_back(run: PartRun) -> None:
    """The lease is lost. When that was because the document was deleted or replaced, its points may
    have been purged before our last ones arrived: remove them."""
    part = run.part
    if not run.deps.catalog.operations.is_live_generation(part.document_id, part.generation_id):
        run.deps.vector_index.delete_generation(run.principal, part.document_id, part.generation_id)


def _write_points(run: PartRun, chunks: Sequence[Chunk], first: int, last: int) -> None:
    deps = run.deps
    manifest = ensure_manifest(run, chunks)
    title = load_title(run)
    batch: list[IndexPoint] = []
    for point in _points(run, chunks, (first, last), manifest.average_terms, title):
        batch.append(point)
        if len(batch) == deps.settings.index.upsert_points:
            deps.vector_index.upsert(run.principal, batch)
            batch = []
            run.checkpoint()
    if batch:
        deps.vector_index.upsert(run.principal, batch)
    run.progress()


def _points(
    run: PartRun,
    chunks: Sequence[Chunk],
    wanted: tuple[int, int],
    average_terms: float,
    title: str,
) -> Iterator[IndexPoint]:
    part = run.part
    first, last = wanted
    for group in vector_groups(first, last, len(chunks)):
        vectors, sentences = _embedded(run, [chunks[ordinal] for ordinal in group])
        for ordinal, vector, sentence_vectors in zip(group, vectors, sentences, strict=True):
            if not first <= ordinal <= last:
                continue
            chunk = chunks[ordinal]
            yield IndexPoint(
                point_id=point_id(part.generation_id, ordinal),
                document_id=part.document_id,
                generation_id=part.generation_id,
                collection=part.collection,
                title=title,
                chunk=chunk,
                dense=tuple(vector),
                lexical=encode_document(chunk.index_text, chunk.language, average_terms),
                sentences=sentence_vectors,
            )


def _embedded(
    run: PartRun, group: Sequence[Chunk]
) -> tuple[list[list[float]], list[SentenceVectors]]:
    """The vectors of a group of chunks, and of each chunk's sentences."""
    chunk_vectors = _vectors(
        run, [chunk.index_text for chunk in group], run.deps.settings.models.max_batch_passages
    )
    pieces = [chunk_sentences(chunk) for chunk in group]
    texts = [_short_enough(run, piece) for found in pieces for piece in found]
    vectors = iter(_vectors(run, texts, _SENTENCES_AT_ONCE) if texts else [])
    packed = [
        pack([(piece.start, piece.end) for piece in found], [next(vectors) for _ in found])
        for found in pieces
    ]
    return chunk_vectors, packed


def _short_enough(run: PartRun, piece: ChunkSentence) -> str:
    """The sentence with its heading where the embedder takes both, else without."""
    counter = run.deps.token_counter
    limit = run.deps.embedder.info().max_tokens - counter.num_special_tokens
    text = piece.embedded_text
    return text if counter.count(text) <= limit else piece.text


def _vectors(run: PartRun, texts: Sequence[str], size: int) -> list[list[float]]:
    """Stored vectors of a group of texts, or new ones from the model server, then stored."""
    deps = run.deps
    info = deps.embedder.info()
    try:
        return deps.artifacts.read_vectors(run.principal, run.sha256, info.fingerprint, texts)
    except NotFound:
        pass
    vectors: list[list[float]] = []
    for start in range(0, len(texts), size):
        vectors += deps.embedder.embed_passages(texts[start : start + size])
        run.progress()
    check_vectors(vectors, len(texts), info)
    deps.artifacts.write_vectors(run.principal, run.sha256, info.fingerprint, texts, vectors)
    return vectors


def check_vectors(vectors: Sequence[Sequence[float]], num_texts: int, info: EmbedderInfo) -> None:
    """Raises InternalError for what must never reach the index: the wrong number of vectors,
    another dimension, values that are no numbers, or a vector of zeros (no direction to
    compare)."""
    if len(vectors) != num_texts:
        raise InternalError(f"the embedder gave {len(vectors)} vectors for {num_texts} texts")
    for vector in vectors:
        if len(vector) != info.dimension:
            raise InternalError(
                f"the embedder gave {len(vector)} dimensions instead of {info.dimension}"
            )
        if not all(math.isfinite(value) for value in vector):
            raise InternalError("the embedder gave values that are not finite")
        if not any(vector):
            raise InternalError("the embedder gave a vector of zeros")
