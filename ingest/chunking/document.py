"""The chunker: whole elements of one section packed up to a target, inside the embedder's limit.

Never across a heading of level 1 or 2; a heading stays with what it heads; an element that does not
fit is cut at sentences, a table at rows with its header repeated; crumbs join a neighbour of their
section. The document's title and the headings above go in front of what is embedded and indexed,
apart from the text that is shown and cited. (Structural chunks of 200 to 400 tokens are good
throughout, and a heading path is the free part of contextual retrieval: arXiv 2410.13070.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.domain.pages import Chunk, ElementKind, SourceSpan
from core.lexical import UNKNOWN_LANGUAGE, detect_language
from ingest.chunking.cutting import Budget, cut_table, cut_text
from ingest.chunking.prefixes import Prefixes
from ingest.chunking.units import sections
from ingest.layout.furniture import mark_furniture
from ingest.layout.levels import settle_levels
from ingest.layout.paragraphs import text_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.domain.pages import DocumentFacts, Page
    from core.ports.models import TokenCounter
    from core.settings import ChunkerSettings
    from ingest.chunking.units import Piece, Unit

# Raised with every change of how the same pages are cut.
CHUNKER_VERSION = "1"


def chunker_fingerprint(settings: ChunkerSettings) -> str:
    """Short and stable: equal for the same rules and settings. The embedder's limit and the title
    change chunks too; the caller knows them."""
    parts = (
        CHUNKER_VERSION,
        settings.target_fraction,
        settings.prefix_fraction,
        settings.min_tokens,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def chunk_document(
    pages: Sequence[Page],
    facts: DocumentFacts,
    *,
    title: str,
    token_counter: TokenCounter,
    max_tokens: int,
    settings: ChunkerSettings,
) -> list[Chunk]:
    """All chunks of a document, in reading order; empty when no page has text.

    Args:
        pages: all of them, ascending; those that could not be read have no text.
        title: goes in front of what is embedded, before the headings.
        max_tokens: the embedder's limit, special tokens included. No chunk's `index_text` has more.
    """
    marked = settle_levels(mark_furniture(pages), facts)
    language = _language(marked, facts)
    chunker = _Chunker(marked, title, Budget(token_counter), max_tokens, settings)
    chunks: list[Chunk] = []
    for section in sections(marked):
        for draft in chunker.pack(section):
            chunks.append(chunker.finish(draft, len(chunks), language))
    return chunks


def _language(pages: Sequence[Page], facts: DocumentFacts) -> str:
    """As the text says; as the file says of itself where there is too little text to tell."""
    found = detect_language("\n".join(page.text for page in pages))
    if found == UNKNOWN_LANGUAGE and facts.language:
        return facts.language[:2].lower()
    return found


@dataclass(slots=True)
class _Draft:
    """A chunk being packed. `units` are whole or cut; `pieces` are what is taken of them."""

    units: list[Unit] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    num_tokens: int = 0

    @property
    def path(self) -> tuple[str, ...]:
        """The headings that all of it stands under."""
        paths = [unit.path for unit in self.units if not unit.is_heading]
        paths = paths or [self.units[-1].path]
        shared = paths[0]
        for path in paths[1:]:
            num = sum(1 for _ in _shared(shared, path))
            shared = shared[:num]
        return shared


def _shared(left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    for mine, other in zip(left, right, strict=False):
        if mine != other:
            return
        yield mine


class _Chunker:
    def __init__(
        self,
        pages: Sequence[Page],
        title: str,
        budget: Budget,
        max_tokens: int,
        settings: ChunkerSettings,
    ) -> None:
        self._pages = {page.number: page for page in pages}
        self._budget = budget
        self._max_tokens = max_tokens
        self._limit = max_tokens - budget.num_special_tokens
        self._target = int(settings.target_fraction * max_tokens) - budget.num_special_tokens
        self._prefixes = Prefixes(title, int(settings.prefix_fraction * max_tokens), budget)
        self._min_tokens = settings.min_tokens

    def pack(self, section: Sequence[Unit]) -> list[_Draft]:
        """The section's units as drafts that fit."""
        drafts: list[_Draft] = []
        current = _Draft()
        pending: list[Unit] = []  # headings and captions that wait for what they belong to
        for position, unit in enumerate(section):
            following = section[position + 1] if position + 1 < len(section) else None
            if _leads(unit, following):
                pending.append(unit)
                continue
            group = [*pending, unit]
            pending = []
            if current.units and self._fits(current, group, self._target):
                self._extend(current, group)
                continue
            if current.units:
                drafts.append(current)
            *whole, current = self._start(group)
            drafts += whole
        if pending:
            if current.units and self._fits(current, pending, self._limit):
                self._extend(current, pending)
            else:
                drafts += [current] if current.units else []
                *whole, current = self._start(pending)
                drafts += whole
        return self._without_crumbs([*drafts, current])

    def finish(self, draft: _Draft, ordinal: int, language: str) -> Chunk:
        """The chunk itself. Checks the hard limit, whatever was estimated on the way."""
        text, spans = self._joined(draft.pieces)
        path = draft.path
        outside = path
        headings = {text_key(unit.text) for unit in draft.units if unit.is_heading}
        while outside and text_key(outside[-1]) in headings:
            outside = outside[:-1]
        prefix = self._prefixes.of(outside)
        index_text = f"{prefix}\n{text}" if prefix else text
        num_tokens = self._budget.true_count(index_text)
        assert num_tokens <= self._max_tokens, "a chunk is longer than the embedder reads"
        return Chunk(
            ordinal=ordinal,
            text=text,
            heading_path=path,
            index_text=index_text,
            spans=spans,
            language=language,
            num_tokens=num_tokens,
            is_table=all(
                unit.is_table or unit.is_heading or unit.kind is ElementKind.CAPTION
                for unit in draft.units
            )
            and any(unit.is_table for unit in draft.units),
        )

    def _start(self, group: list[Unit]) -> list[_Draft]:
        """One or more drafts for units that begin a chunk; only the last may grow."""
        draft = _Draft()
        if group[-1].header is not None:
            self._take(draft, group, [group[-1].header, *(unit.piece for unit in group)])
        else:
            self._take(draft, group, [unit.piece for unit in group])
        if self._size(draft) <= self._limit:
            return [draft]
        return self._cut(group)

    def _cut(self, group: list[Unit]) -> list[_Draft]:
        """The last unit in pieces, the first of them behind what leads it if that fits."""
        *leading, unit = group
        lead = _Draft()
        if leading:
            self._take(lead, leading, [other.piece for other in leading])
        prefix_tokens = self._prefixes.reserve(unit.path)
        room = max(1, self._limit - prefix_tokens - 2)
        aim = max(1, min(room, self._target - prefix_tokens - 2))
        if leading and lead.num_tokens > aim // 2:
            return [*self._start(leading), *self._cut([unit])]
        aim = max(1, aim - lead.num_tokens)
        drafts: list[_Draft] = []
        for pieces in self._pieces(unit, aim):
            draft = _Draft()
            if drafts:
                self._take(draft, [unit], pieces)
            else:
                self._take(draft, group, [*lead.pieces, *pieces])
            drafts.append(draft)
        return drafts

    def _pieces(self, unit: Unit, aim: int) -> list[list[Piece]]:
        if unit.is_table:
            return cut_table(unit, aim, self._budget)
        page, offset, _ = unit.piece
        return [
            [(page, offset + start, offset + end)]
            for start, end in cut_text(unit.text, aim, self._budget)
        ]

    def _without_crumbs(self, drafts: list[_Draft]) -> list[_Draft]:
        """Drafts under `min_tokens` put to the one before, or to the one after, where it fits."""
        result: list[_Draft] = []
        for draft in drafts:
            before = result[-1] if result else None
            is_crumb = draft.num_tokens < self._min_tokens or (
                before is not None and before.num_tokens < self._min_tokens
            )
            if before is not None and is_crumb:
                both = _Draft()
                new = [piece for piece in draft.pieces if piece not in before.pieces]
                self._take(both, [*before.units, *draft.units], [*before.pieces, *new])
                if self._size(both) <= self._limit:
                    result[-1] = both
                    continue
            result.append(draft)
        return result

    def _fits(self, draft: _Draft, group: Sequence[Unit], limit: int) -> bool:
        paths = {unit.path for unit in (*draft.units, *group)}
        more = sum(self._count(unit.text) + 1 for unit in group)
        return draft.num_tokens + more + max(map(self._prefixes.reserve, paths)) < limit

    def _extend(self, draft: _Draft, group: Sequence[Unit]) -> None:
        draft.units += group
        draft.pieces += [unit.piece for unit in group]
        draft.num_tokens += sum(self._count(unit.text) + 1 for unit in group)

    def _take(self, draft: _Draft, units: Sequence[Unit], pieces: Sequence[Piece]) -> None:
        """Fill a draft. Its size is the sum of its pieces', with one token for each join: what
        stands between them can cost no more."""
        draft.units, draft.pieces = list(units), list(pieces)
        texts = [self._pages[page].text[start:end] for page, start, end in pieces]
        draft.num_tokens = sum(self._count(text) + 1 for text in texts)

    def _size(self, draft: _Draft) -> int:
        """Tokens with the longest prefix that it may get in the end."""
        paths = {unit.path for unit in draft.units}
        return draft.num_tokens + max(map(self._prefixes.reserve, paths)) + 1

    def _joined(self, pieces: Sequence[Piece]) -> tuple[str, tuple[SourceSpan, ...]]:
        """Text and spans; pieces of a page with nothing but white space between are one span."""
        runs: list[Piece] = []
        for page, start, end in pieces:
            last = runs[-1] if runs else None
            if (
                last
                and last[0] == page
                and last[2] <= start
                and not (self._pages[page].text[last[2] : start].strip())
            ):
                runs[-1] = (page, last[1], end)
            else:
                runs.append((page, start, end))
        spans: list[SourceSpan] = []
        texts: list[str] = []
        at = 0
        for page, start, end in runs:
            texts.append(self._pages[page].text[start:end])
            spans.append(SourceSpan(page, start, end, at, at + end - start))
            at += end - start + 1
        return "\n".join(texts), tuple(spans)

    def _count(self, text: str) -> int:
        return self._budget.count(text) if text else 0


def _leads(unit: Unit, following: Unit | None) -> bool:
    """Whether a unit belongs to the one after it."""
    if unit.is_heading:
        return True
    return unit.kind is ElementKind.CAPTION and following is not None and following.is_table
