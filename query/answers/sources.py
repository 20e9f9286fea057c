"""Passages as the sources of an answer: which bytes, which pages, and where to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from core.domain.answers import AnswerSource, Citation
from core.domain.documents import ActiveVersion
from core.domain.search import Passage
from query.answers.quotes import Quote


@dataclass(frozen=True, slots=True)
class SourceMaker:
    """How this caller sees sources. `public_url` makes `view_url` absolute when it is set."""

    answer_id: str
    public_url: str
    shows_scores: bool

    def source(self, source_id: str, passage: Passage, version: ActiveVersion) -> AnswerSource:
        """A source before anything of it is quoted: its first page is what `view_url` opens."""
        pages = passage.chunk.pages
        return AnswerSource(
            id=source_id,
            document_id=passage.document_id,
            version=f"sha256:{version.sha256}",
            title=version.title,
            collection=version.collection,
            chunk_id=passage.point_id,
            pages=pages,
            page_size={},
            uri=f"s3://{version.bucket}/{version.key}",
            view_url=self._view_url(version, pages[0] if pages else None, None),
            scores=passage.scores if self.shows_scores else None,
        )

    def cited(self, source_id: str, quote: Quote, citation: Citation) -> AnswerSource:
        """A quoted source: `view_url` opens the page of the (first) citation with it marked."""
        passage = quote.evidence.passage
        plain = self.source(source_id, passage, quote.version)
        return replace(
            plain,
            page_size=quote.page_sizes,
            view_url=self._view_url(quote.version, quote.locations[0].page, citation),
        )

    def _view_url(self, version: ActiveVersion, page: int | None, citation: Citation | None) -> str:
        url = f"{self.public_url.rstrip('/')}/view/{version.document_id}?v=sha256:{version.sha256}"
        if citation is not None:
            url += f"&answer={self.answer_id}&cite={citation.id}"
        return url if page is None else f"{url}&page={page}"


def number_passages(passages: Iterable[Passage]) -> Mapping[str, str]:
    """Source ids (`s1`, `s2`, ...) by point id, in the order given; repeats keep their first."""
    ids: dict[str, str] = {}
    for passage in passages:
        ids.setdefault(passage.point_id, f"s{len(ids) + 1}")
    return ids
