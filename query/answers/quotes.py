"""Quotes: cut from the stored pages by offsets, and only shown when they are what was retrieved.

The text of a chunk lives in the index; the text of its pages in the artifact bucket, under the
version's hash. A quote is always the page's text. The two are compared first: where they differ,
the offsets cannot be trusted, and a quote that might point at other words is worse than none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from core.artifacts import Artifacts
from core.domain.access import Principal
from core.domain.documents import ActiveVersion
from core.domain.pages import Chunk, Location, Page, SourceSpan
from core.errors import NotFound
from query.answers.evidence import Evidence

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim page text. `locations` has one entry per page and uninterrupted range."""

    evidence: Evidence
    version: ActiveVersion
    text: str
    locations: tuple[Location, ...]
    page_sizes: dict[int, tuple[float, float]]


class PageTexts:
    """The stored pages that some evidence needs, read once per document."""

    def __init__(
        self,
        principal: Principal,
        artifacts: Artifacts,
        versions: Mapping[str, ActiveVersion],
        evidence: Iterable[Evidence],
    ) -> None:
        """Raises ObjectStoreUnavailable."""
        self._versions = versions
        wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
        for item in evidence:
            version = versions[item.passage.generation_id]
            wanted[version.sha256, version.parser_fingerprint].update(item.passage.chunk.pages)
        self._pages: dict[tuple[str, str], dict[int, Page]] = {}
        for content, numbers in wanted.items():
            try:
                self._pages[content] = artifacts.read_pages(principal, *content, sorted(numbers))
            except NotFound:  # purged while they were being read
                self._pages[content] = {}

    def has_any(self, evidence: Evidence) -> bool:
        """Whether any page under the evidence's chunk is stored."""
        _, pages = self.of(evidence)
        return any(number in pages for number in evidence.passage.chunk.pages)

    def of(self, evidence: Evidence) -> tuple[ActiveVersion, dict[int, Page]]:
        version = self._versions[evidence.passage.generation_id]
        return version, self._pages[version.sha256, version.parser_fingerprint]


def cut_quote(evidence: Evidence, texts: PageTexts) -> Quote | None:
    """The verbatim quote of some evidence, or None (logged) when its offsets do not hold.

    They hold when every piece of the evidence's chunk is exactly what the page says at the piece's
    offsets, and nothing but white space lies between the pieces.
    """
    version, pages = texts.of(evidence)
    chunk = evidence.passage.chunk
    spans = chunk.locate(evidence.start, evidence.end)
    problem = _problem(chunk, spans, pages, evidence)
    if problem is not None:
        log.error(
            "quote.dropped",
            problem=problem,
            document_id=version.document_id,
            generation_id=version.generation_id,
            chunk=chunk.ordinal,
            start=evidence.start,
            end=evidence.end,
        )
        return None
    merged = _merge(spans, pages)
    return Quote(
        evidence=evidence,
        version=version,
        text="\n".join(pages[page].text[start:end] for page, start, end in merged),
        locations=tuple(
            Location(page, start, end, pages[page].rects(start, end)) for page, start, end in merged
        ),
        page_sizes={
            number: (pages[number].width, pages[number].height)
            for number in chunk.pages
            if number in pages
        },
    )


def _problem(
    chunk: Chunk, spans: Sequence[SourceSpan], pages: Mapping[int, Page], evidence: Evidence
) -> str | None:
    """What is wrong with the way from the chunk to its pages; None when nothing is."""
    at = evidence.start
    for span in spans:
        page = pages.get(span.page)
        if page is None:
            return "page_missing"
        if not 0 <= span.start < span.end <= len(page.text):
            return "outside_page"
        if page.text[span.start : span.end] != chunk.text[span.chunk_start : span.chunk_end]:
            return "text_differs"
        if chunk.text[at : span.chunk_start].strip():
            return "text_without_place"
        at = span.chunk_end
    if not spans or chunk.text[at : evidence.end].strip():
        return "text_without_place"
    return None


def _merge(spans: Sequence[SourceSpan], pages: Mapping[int, Page]) -> list[tuple[int, int, int]]:
    """(page, start, end) with neighbours on a page joined when only white space parts them."""
    merged: list[tuple[int, int, int]] = []
    for span in spans:
        if merged:
            page, start, end = merged[-1]
            gap = pages[page].text[end : span.start]
            if page == span.page and end <= span.start and not gap.strip():
                merged[-1] = (page, start, span.end)
                continue
        merged.append((span.page, span.start, span.end))
    return merged
