"""From evidence to verified quotes, each place once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.domain.access import Principal
from core.errors import InternalError
from query.answers.deps import AnswerDeps
from query.answers.evidence import Evidence, reading_order
from query.answers.finding import Found, FoundPart
from query.answers.quotes import PageTexts, Quote, cut_quote

__all__ = ["overlaps", "quote_evidence", "quote_found", "unserved"]


def quote_found(principal: Principal, found: Found, deps: AnswerDeps) -> list[Quote]:
    """The verified quotes of all parts' evidence, in the order of an answer. See quote_evidence."""
    wanted = [item for part in found.parts for item in reading_order(part.evidence)]
    return quote_evidence(principal, found, wanted, deps)


def quote_evidence(
    principal: Principal, found: Found, wanted: Iterable[Evidence], deps: AnswerDeps
) -> list[Quote]:
    """Verified quotes in the order of the evidence; of evidence that overlaps, the first.

    Evidence of a document that was deleted since the search is none. Raises InternalError when
    there is other evidence but no quote of it holds, ObjectStoreUnavailable, CatalogUnavailable.
    """
    kept = _without_repeats(wanted)
    texts = PageTexts(principal, deps.artifacts, found.versions, kept)
    without_pages = [item for item in kept if not texts.has_any(item)]
    if without_pages:
        deleted = _deleted(principal, without_pages, deps)
        kept = [item for item in kept if item.passage.document_id not in deleted]
    quotes = [quote for quote in (cut_quote(item, texts) for item in kept) if quote]
    if kept and not quotes:
        raise InternalError(
            "the stored pages do not match what was found",
            hint="put the document into its bucket again",
        )
    return quotes


def unserved(parts: Iterable[FoundPart], quotes: Sequence[Quote]) -> list[FoundPart]:
    """The parts of the question of whose evidence nothing could be quoted."""
    return [
        part
        for part in parts
        if not any(overlaps(item, quote.evidence) for item in part.evidence for quote in quotes)
    ]


def overlaps(item: Evidence, other: Evidence) -> bool:
    is_same_passage = item.passage.point_id == other.passage.point_id
    return is_same_passage and item.start < other.end and other.start < item.end


def _without_repeats(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Evidence that serves two parts is quoted once."""
    kept: list[Evidence] = []
    for item in evidence:
        if not any(overlaps(item, other) for other in kept):
            kept.append(item)
    return kept


def _deleted(principal: Principal, evidence: Iterable[Evidence], deps: AnswerDeps) -> set[str]:
    """Those of the evidence's documents whose version is no longer the active one: missing pages of
    an active one are a fault, of another they mean that it is not kept any more."""
    document_of = {item.passage.generation_id: item.passage.document_id for item in evidence}
    with deps.catalog.snapshot(principal) as snapshot:
        active = snapshot.active(sorted(document_of))
    return {document_of[name] for name in document_of if name not in active}
