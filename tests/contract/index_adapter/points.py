"""Points for the conformance suite: short texts with three dimensions and real BM25 vectors."""

import math
import uuid

from core.domain.access import Principal
from core.domain.pages import Chunk, SourceSpan
from core.domain.search import IndexManifest, IndexPoint
from core.ids import point_id
from core.lexical import encode_document

ANNE = Principal.system("ten_anne", "test")
BOB = Principal.system("ten_bob", "test")
AVERAGE = 5.0

MANIFEST = IndexManifest(
    embedder_fingerprint="embedder-1",
    dimension=3,
    analyser_fingerprint="analyser-1",
    schema=1,
    average_terms=AVERAGE,
)


def generation(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def unit(*values: float) -> tuple[float, ...]:
    length = math.sqrt(sum(value * value for value in values))
    return tuple(value / length for value in values)


def chunk(text: str, ordinal: int = 0, page: int = 7) -> Chunk:
    spans = (SourceSpan(page, 100, 100 + len(text), 0, len(text)),)
    return Chunk(
        ordinal=ordinal,
        text=text,
        heading_path=("Manual", "Pümps"),
        index_text=f"Manual Pümps {text}",
        spans=spans,
        language="en",
        num_tokens=len(text.split()),
        is_table=False,
    )


def point(
    text: str,
    dense: tuple[float, ...],
    *,
    document: str = "doc_a",
    made_by: str = "one",
    ordinal: int = 0,
    collection: str = "default",
) -> IndexPoint:
    """`made_by` names the generation."""
    made = chunk(text, ordinal)
    return IndexPoint(
        point_id=point_id(generation(made_by), ordinal),
        document_id=document,
        generation_id=generation(made_by),
        collection=collection,
        title=f"Title of {document}",
        chunk=made,
        dense=unit(*dense),
        lexical=encode_document(made.index_text, made.language, AVERAGE),
    )
