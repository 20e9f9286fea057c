"""Parse and chunk: from a file's bytes to stored pages, from pages to stored chunks.

Every function can be run again at any point: what is stored under the content's hash and the
pipeline's fingerprints is taken as it is, what is missing is made. So a later stage that finds a
hole (an artifact was lost) fills it rather than fail.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core.domain.documents import NewPart, PartResult, Stage
from core.domain.pages import Chunk, DocumentFacts, Page, PageOutcome
from core.errors import (
    CorruptDocument,
    NotFound,
)
from core.lexical.bm25 import count_terms
from ingest.batching import chunk_parts, remaining_parse_parts, runs, split
from ingest.chunking import chunk_document
from ingest.content import is_first_part, local_file, settle_content
from ingest.outcomes import why_no_text
from ingest.part_run import StopRequested

if TYPE_CHECKING:
    from pathlib import Path

    from core.domain.search import EmbedderInfo
    from ingest.part_run import PartRun

_UNREADABLE = frozenset({PageOutcome.TIMED_OUT, PageOutcome.FAILED})
_NEEDS_OCR = frozenset({PageOutcome.IMAGE_ONLY, PageOutcome.GARBAGE})
_NOT_SEARCHABLE = _UNREADABLE | _NEEDS_OCR
_PAGES_AT_ONCE = 8
_MAX_WARNINGS = 100


def parse(run: PartRun) -> PartResult | None:
    """Pages first..last of the part, stored. None when the content turned out to be what is active
    already: the catalog has closed the version by then."""
    with local_file(run) as path:
        if not settle_content(run, path):
            return None
        facts, pages, remarks = _stored_or_parsed(run, path, run.part.first, run.part.last)
    if is_first_part(run):
        remarks = (*facts.warnings, *remarks)
    return _parse_result(run, facts, pages, remarks)


def chunk(run: PartRun) -> PartResult:
    """All chunks of the document, stored."""
    chunks = load_chunks(run)
    settings = run.deps.settings.worker
    languages = Counter(chunk.language for chunk in chunks)
    return PartResult(
        next_stage=chunk_parts(Stage.EMBED, len(chunks), settings.embed_chunks_per_part),
        num_chunks=len(chunks),
        num_terms=sum(count_terms(chunk.index_text, chunk.language) for chunk in chunks),
        language=languages.most_common(1)[0][0],
    )


def load_chunks(run: PartRun) -> list[Chunk]:
    """The document's chunks, made and stored when they are not there.

    Raises NeedsOcr, CorruptDocument or ParserTimedOut for a document without any text.
    """
    info = run.deps.embedder.info()
    artifacts = run.deps.artifacts
    facts = _stored_facts(run)
    if facts is not None:
        name = _chunks_name(run, title_of(run, facts), info)
        with suppress(NotFound):
            return artifacts.read_chunks(run.principal, run.sha256, name)
    facts, pages = _all_pages(run)
    run.checkpoint()
    title = title_of(run, facts)
    if not any(page.text.strip() for page in pages):
        raise why_no_text(pages)
    chunks = chunk_document(
        pages,
        facts,
        title=title,
        token_counter=run.deps.token_counter,
        max_tokens=info.max_tokens,
        settings=run.deps.settings.chunker,
    )
    if not chunks:
        raise why_no_text(pages)
    name = _chunks_name(run, title, info)
    artifacts.write_chunks(run.principal, run.sha256, name, chunks)
    return list(chunks)


def load_title(run: PartRun) -> str:
    """The title as the chunks were made with it."""
    facts = _stored_facts(run)
    return title_of(run, facts if facts is not None else _all_pages(run)[0])


def title_of(run: PartRun, facts: DocumentFacts) -> str:
    """The document's own title, else its file name without the ending."""
    return facts.title or PurePosixPath(run.part.key).stem


def _chunks_name(run: PartRun, title: str, info: EmbedderInfo) -> str:
    """Chunks depend on the pages, the rules, the embedder's tokenizer and limit, and the title in
    their prefix."""
    parts = (
        run.fingerprint.parser,
        run.fingerprint.chunker,
        info.fingerprint,
        info.max_tokens,
        title,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _stored_or_parsed(
    run: PartRun, path: Path, first: int, last: int
) -> tuple[DocumentFacts, list[Page], tuple[str, ...]]:
    """The pages of a range from its start, as many as the part's time allowed, never none; and what
    the parser remarked.

    Pages are stored every few, so that a killed worker repeats little, and a part of slow pages
    stays far from the hard limit.
    """
    artifacts, parser = run.deps.artifacts, run.fingerprint.parser
    facts = _stored_facts(run)
    stored: dict[int, Page] = {}
    remarks: list[str] = []
    if facts is not None:
        last = min(last, facts.page_count)
        stored = artifacts.read_pages(run.principal, run.sha256, parser, range(first, last + 1))
    missing = [number for number in range(first, last + 1) if number not in stored]
    for low, high in split(runs(missing), _PAGES_AT_ONCE):
        if facts is not None and low > facts.page_count:
            break
        if low > first and run.is_time_to_stop():
            last = low - 1
            break
        parsed = run.deps.parser.parse(path, low, high, lambda _page: run.progress())
        if facts is None:
            facts = parsed.facts
            artifacts.write_facts(run.principal, run.sha256, parser, facts)
        if parsed.pages:
            artifacts.write_pages(run.principal, run.sha256, parser, parsed.pages)
        stored |= {page.number: page for page in parsed.pages}
        remarks += parsed.warnings
    assert facts is not None
    pages = [stored[number] for number in sorted(stored) if number <= last]
    if not pages:
        raise CorruptDocument("the file has no such pages", first=first, last=last)
    return facts, pages, tuple(remarks)


def _parse_result(
    run: PartRun, facts: DocumentFacts, pages: list[Page], remarks: tuple[str, ...]
) -> PartResult:
    """Raises ParserTimedOut when the part is the whole document and no page of it could be read."""
    part, settings = run.part, run.deps.settings.parser
    last_done = pages[-1].number
    if len(pages) == facts.page_count and all(page.outcome in _UNREADABLE for page in pages):
        raise why_no_text(pages)
    if part.page_count is None:  # the first part to learn how many pages there are
        rest = remaining_parse_parts(facts.page_count, last_done, settings.pages_per_part)
    elif last_done < part.last:  # out of time
        rest = remaining_parse_parts(part.last, last_done, settings.pages_per_part)
    else:
        rest = ()
    return PartResult(
        same_stage=rest,
        next_stage=(NewPart(Stage.CHUNK, 0, 0),),
        page_count=facts.page_count,
        title=title_of(run, facts),
        language=facts.language,
        failed_pages=tuple(page.number for page in pages if page.outcome in _NOT_SEARCHABLE),
        num_pages_done=len(pages),
        warnings=_warnings(remarks, pages),
        parser_fingerprint=run.fingerprint.parser,
    )


def _warnings(remarks: tuple[str, ...], pages: list[Page]) -> tuple[str, ...]:
    """What the parser said, and reasons by page, as `page 7: image_only`; each once."""
    found = list(remarks)
    for page in pages:
        if page.outcome in _NOT_SEARCHABLE:
            found.append(f"page {page.number}: {page.outcome}")
        found += [f"page {page.number}: {warning}" for warning in page.warnings]
    return tuple(dict.fromkeys(found))[:_MAX_WARNINGS]


def _stored_facts(run: PartRun) -> DocumentFacts | None:
    try:
        return run.deps.artifacts.read_facts(run.principal, run.sha256, run.fingerprint.parser)
    except NotFound:
        return None


def _all_pages(run: PartRun) -> tuple[DocumentFacts, list[Page]]:
    """Every page of the document. Those that were lost since are parsed again."""
    facts = _stored_facts(run)
    if facts is not None:
        stored = run.deps.artifacts.read_pages(run.principal, run.sha256, run.fingerprint.parser)
        if len(stored) >= facts.page_count:
            return facts, [stored[number] for number in sorted(stored)]
    with local_file(run) as path:
        last = facts.page_count if facts else run.part.page_count or 1
        facts, pages, _ = _stored_or_parsed(run, path, 1, last)
    if len(pages) < facts.page_count:
        raise StopRequested
    return facts, pages
