"""From a document's pages to chunks that fit the embedder and say where each word stands.

Knows no file format, no model and no index: pages, a token counter and settings go in.
"""

from ingest.chunking.document import CHUNKER_VERSION, chunk_document, chunker_fingerprint

__all__ = ["CHUNKER_VERSION", "chunk_document", "chunker_fingerprint"]
