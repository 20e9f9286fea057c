"""What this release and these settings would make of a file, as one short text.

It is part of a generation's identity, and wanted before anything is opened: by the API when a
document is uploaded, by the sweeper when one appears in a bucket. So it asks no server. The
embedder is named, not hashed: its weights' fingerprint is known to the model server alone, which
may be restarting. That the index only ever holds vectors of one set of weights is the manifest's
business."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from core.domain.pipeline import INDEX_SCHEMA, PipelineFingerprint
from core.lexical.bm25 import analyser_fingerprint
from ingest.chunking import chunker_fingerprint
from ingest.parsing.sandbox import parser_fingerprint

if TYPE_CHECKING:
    from core.settings import Settings


def pipeline_fingerprint(settings: Settings) -> PipelineFingerprint:
    """The fingerprint of everything between a file and its points, from settings and versions."""
    embedder = hashlib.sha256(settings.models.embedder.encode()).hexdigest()[:12]
    return PipelineFingerprint(
        parser=parser_fingerprint(settings.parser),
        chunker=chunker_fingerprint(settings.chunker),
        embedder=embedder,
        analyser=analyser_fingerprint(),
        schema=str(INDEX_SCHEMA),
    )
