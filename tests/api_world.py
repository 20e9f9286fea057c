"""A small world for tests of the API: two tenants, their buckets, keys and documents.

The catalog is the real one (SQLite); object store, index, models and renderer are fakes. Documents
take the real way through the catalog, so that what is visible is what the catalog says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.adapters.catalog import SqlCatalog
from core.artifacts import Artifacts
from core.chunk_sentences import chunk_sentences
from core.domain.access import Principal, Scope
from core.domain.documents import Accepted, NewPart, ObservedObject, PartResult, Queue, Stage
from core.domain.pages import Chunk, Line, Page, PageOutcome, SourceSpan
from core.domain.search import IndexManifest, IndexPoint, SentenceVectors
from core.ids import point_id
from core.lexical import analyser_fingerprint, encode_document
from core.sentence_vectors import pack
from core.settings import Settings, load_settings
from query.services import AnswerQuestion, Services
from tests.fakes.answering import ScriptedAnswers
from tests.fakes.chat_proxy import FakeChatProxy
from tests.fakes.clock import FakeClock
from tests.fakes.job_queue import FakeJobQueue
from tests.fakes.models import DIMENSION, FakeEmbedder, hashed_vector
from tests.fakes.object_store import FakeObjectStore
from tests.fakes.renderer import FakePageRenderer
from tests.fakes.vector_index import FakeVectorIndex

PARSER = "parser-1"
FINGERPRINT = f"{PARSER}.chunker-1.embedder-1.analyser-1.schema-1"
AVERAGE_TERMS = 12.0
BUCKETS = {"documents": "default", "theirs": "other"}
_FIRST = NewPart(Stage.PARSE, 1, 32)
_ROUTE = (Stage.PARSE, Stage.CHUNK, Stage.EMBED, Stage.INDEX, Stage.ACTIVATE)


@dataclass
class World:
    """`services` is what the application gets; the fakes behind it are at hand for the tests."""

    settings: Settings
    catalog: SqlCatalog
    clock: FakeClock
    store: FakeObjectStore
    index: FakeVectorIndex
    embedder: FakeEmbedder
    renderer: FakePageRenderer
    job_queue: FakeJobQueue
    artifacts: Artifacts
    answers: ScriptedAnswers
    chat_proxy: FakeChatProxy
    tenant_ids: dict[str, str]
    services: Services
    num_closed: list[int] = field(default_factory=list)

    def key(
        self,
        *scopes: Scope,
        tenant: str = "default",
        collections: Sequence[str] | None = None,
        secret: str | None = None,
        is_single_use: bool = False,
    ) -> str:
        """A new key's secret; all scopes unless some are named."""
        access = self.catalog.access
        created = access.create_key(
            access.ensure_tenant(tenant),
            name="test",
            scopes=frozenset(scopes or Scope),
            collections=None if collections is None else frozenset(collections),
            secret=secret,
            is_single_use=is_single_use,
        )
        assert created.secret is not None
        return created.secret

    def owner(self, tenant: str = "default") -> Principal:
        return Principal.system(self.catalog.access.ensure_tenant(tenant), "test")

    def ingest(
        self,
        key: str = "hr/handbook.pdf",
        texts: Sequence[str] = ("The pumps are tested yearly.\nA log is kept.",),
        *,
        bucket: str = "documents",
        body: bytes | None = None,
    ) -> Accepted:
        """A document with these pages, taken all the way to `ready` (while nothing else waits)."""
        principal = self.owner(BUCKETS[bucket])
        content = body if body is not None else b"%PDF-1.7\n" + "\f".join(texts).encode()
        accepted = self.announce(key, content, bucket=bucket)
        pages = [lined_page(number, text) for number, text in enumerate(texts, start=1)]
        sha256 = hashlib.sha256(content).hexdigest()
        original = self.artifacts.original_key(principal, sha256)
        self.store.put(principal, self.artifacts.bucket, original, content)
        self.artifacts.write_pages(principal, sha256, PARSER, pages)
        self._index(principal, accepted, key, pages)
        self._activate(accepted, sha256, num_pages=len(pages))
        return accepted

    def announce(self, key: str, content: bytes, *, bucket: str = "documents") -> Accepted:
        """An object that was just put: accepted, and nothing done yet."""
        principal = self.owner(BUCKETS[bucket])
        stat = self.store.put(principal, bucket, key, content)
        observed = ObservedObject(
            bucket=bucket,
            key=key,
            etag=stat.etag,
            size_bytes=stat.size_bytes,
            last_modified=stat.last_modified,
            sha256=hashlib.sha256(content).hexdigest(),
        )
        return self.services.accept(principal, observed, queue=Queue.BULK)

    def _index(
        self, principal: Principal, accepted: Accepted, key: str, pages: Sequence[Page]
    ) -> None:
        title = key.rpartition("/")[2]
        self.index.upsert(
            principal,
            [
                IndexPoint(
                    point_id=point_id(accepted.generation_id, ordinal),
                    document_id=accepted.document_id,
                    generation_id=accepted.generation_id,
                    collection=key.partition("/")[0],
                    title=title,
                    chunk=chunk,
                    dense=tuple(hashed_vector(chunk.index_text)),
                    lexical=encode_document(chunk.index_text, "en", AVERAGE_TERMS),
                    sentences=sentence_vectors(chunk),
                )
                for ordinal, chunk in enumerate(map(page_chunk, pages))
            ],
        )

    def _activate(self, accepted: Accepted, sha256: str, *, num_pages: int) -> None:
        parts = self.catalog.parts
        for stage in _ROUTE:
            (message,) = parts.take_outbox(10)
            parts.mark_sent([message.message_id])
            part = parts.lease(message.part_id, owner="test", lease_s=60)
            assert part is not None
            assert part.stage is stage
            if stage is Stage.ACTIVATE:
                assert parts.activate(part, num_points=num_pages)
                return
            if stage is Stage.PARSE:
                parts.set_content(part, sha256=sha256, etag=part.etag)
            parts.complete(part, _result(stage, num_pages))


def _result(stage: Stage, num_pages: int) -> PartResult:
    following = (NewPart(_ROUTE[_ROUTE.index(stage) + 1], 0, 0),)
    if stage is Stage.PARSE:
        return PartResult(
            next_stage=following,
            page_count=num_pages,
            num_pages_done=num_pages,
            parser_fingerprint=PARSER,
        )
    if stage is Stage.CHUNK:
        return PartResult(next_stage=following, num_chunks=num_pages, num_terms=100)
    return PartResult(next_stage=following)


def sentence_vectors(chunk: Chunk) -> SentenceVectors:
    pieces = chunk_sentences(chunk)
    return pack(
        [(piece.start, piece.end) for piece in pieces],
        [hashed_vector(piece.embedded_text) for piece in pieces],
    )


def lined_page(number: int, text: str) -> Page:
    """A page of 600 x 800 points with one printed line for each line of the text."""
    lines = []
    start = 0
    for place, line in enumerate(text.split("\n")):
        top = 0.1 + 0.04 * place
        right = min(0.95, 0.1 + 0.012 * len(line))
        lines.append(Line(start, start + len(line), (0.1, top, right, top + 0.02)))
        start += len(line) + 1
    return Page(
        number=number,
        width=600.0,
        height=800.0,
        rotation=0,
        label=str(number),
        text=text,
        lines=tuple(lines),
        elements=(),
        outcome=PageOutcome.OK,
    )


def page_chunk(page: Page) -> Chunk:
    """The whole page as one chunk."""
    return Chunk(
        ordinal=page.number - 1,
        text=page.text,
        heading_path=("Chapter",),
        index_text=page.text,
        spans=(SourceSpan(page.number, 0, len(page.text), 0, len(page.text)),),
        language="en",
        num_tokens=len(page.text.split()),
    )


def build_world(
    catalog_path: Path,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    answer: AnswerQuestion | None = None,
) -> World:
    """A world over a migrated catalog file; `sections` are settings as in the file."""
    sections = sections or {}
    settings = load_settings(
        {
            **sections,
            "objects": {"buckets": BUCKETS, **sections.get("objects", {})},
            "data_dir": str(catalog_path.parent),
        }
    )
    clock = FakeClock()
    catalog = SqlCatalog(f"sqlite:///{catalog_path}", clock=clock)
    tenant_ids = {
        bucket: catalog.access.ensure_tenant(tenant) for bucket, tenant in BUCKETS.items()
    }
    store = FakeObjectStore(tenant_ids)
    artifacts = Artifacts(store, settings.objects.artifacts_bucket)
    index = FakeVectorIndex()
    index.ensure(
        IndexManifest("fake-embedder", DIMENSION, analyser_fingerprint(), 1, AVERAGE_TERMS)
    )
    embedder, renderer, job_queue = FakeEmbedder(), FakePageRenderer(artifacts), FakeJobQueue()
    answers, chat_proxy = ScriptedAnswers(catalog), FakeChatProxy()
    closings: list[int] = []
    services = Services(
        settings=settings,
        catalog=catalog,
        store=store,
        artifacts=artifacts,
        renderer=renderer,
        job_queue=job_queue,
        clock=clock,
        index=index,
        embedder=embedder,
        answer=answer or answers,
        accept=_accept_into(catalog),
        tenant_ids=tenant_ids,
        close=lambda: closings.append(1),
        version="0.0-test",
        chat_proxy=chat_proxy,
    )
    return World(
        settings,
        catalog,
        clock,
        store,
        index,
        embedder,
        renderer,
        job_queue,
        artifacts,
        answers,
        chat_proxy,
        tenant_ids,
        services,
        closings,
    )


def _accept_into(catalog: SqlCatalog) -> Callable[..., Accepted]:
    def accept(principal: Principal, observed: ObservedObject, *, queue: Queue) -> Accepted:
        return catalog.intake.accept(
            principal,
            observed,
            pipeline_fingerprint=FINGERPRINT,
            first_part=_FIRST,
            queue=queue,
        )

    return accept
