"""Words to numbers: language detection, the one analyser, and BM25 as sparse vectors.

Used alike when indexing and when asking. It knows no index, no chunk and no page.
"""

from core.lexical.analysis import UNKNOWN_LANGUAGE, index_terms
from core.lexical.bm25 import (
    analyser_fingerprint,
    count_terms,
    encode_document,
    encode_question,
    term_index,
)
from core.lexical.languages import detect_language

__all__ = [
    "UNKNOWN_LANGUAGE",
    "analyser_fingerprint",
    "count_terms",
    "detect_language",
    "encode_document",
    "encode_question",
    "index_terms",
    "term_index",
]
