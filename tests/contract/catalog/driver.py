"""A worker and a bucket in one: takes documents through their stages, one call at a time."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

from core.domain.documents import (
    Accepted,
    DocumentRecord,
    LeasedPart,
    NewPart,
    ObservedObject,
    PartResult,
    Queue,
    Stage,
)
from core.errors import NotFound

if TYPE_CHECKING:
    from core.domain.access import Principal
    from core.ports.catalog import Catalog

BUCKET = "documents"
FINGERPRINT = "pipeline-1"
LEASE_S = 60.0
PARSE = NewPart(Stage.PARSE, 1, 32)
CHUNK = NewPart(Stage.CHUNK, 0, 0)
EMBED = NewPart(Stage.EMBED, 0, 4)
INDEX = NewPart(Stage.INDEX, 0, 4)
ACTIVATE = NewPart(Stage.ACTIVATE, 0, 0)
NUM_CHUNKS = 5

RESULTS = {
    Stage.PARSE: PartResult(
        next_stage=(CHUNK,), page_count=3, num_pages_done=3, parser_fingerprint="parser-1"
    ),
    Stage.CHUNK: PartResult(next_stage=(EMBED,), num_chunks=NUM_CHUNKS, num_terms=100),
    Stage.EMBED: PartResult(next_stage=(INDEX,)),
    Stage.INDEX: PartResult(next_stage=(ACTIVATE,)),
}


def sha256_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def observed(key: str, content: str, *, is_upload: bool = False) -> ObservedObject:
    """An object whose etag and size follow from its content; uploads know their hash."""
    return ObservedObject(
        bucket=BUCKET,
        key=key,
        etag=f"etag-{content}",
        size_bytes=len(content),
        sha256=sha256_of(content) if is_upload else None,
    )


class Driver:
    """Finds the parts of a generation by listening to the outbox after each step."""

    def __init__(self, catalog: Catalog, principal: Principal) -> None:
        self.catalog = catalog
        self.principal = principal
        self.announced: dict[str, list[str]] = defaultdict(list)
        self.content: dict[str, str] = {}

    def accept(
        self,
        key: str = "hr/handbook.pdf",
        content: str = "one",
        *,
        is_upload: bool = False,
        first_part: NewPart = PARSE,
        principal: Principal | None = None,
    ) -> Accepted:
        accepted = self.catalog.intake.accept(
            principal or self.principal,
            observed(key, content, is_upload=is_upload),
            pipeline_fingerprint=FINGERPRINT,
            first_part=first_part,
            queue=Queue.BULK,
        )
        if accepted.is_new:
            self.content[accepted.generation_id] = content
        self.listen(accepted.generation_id)
        return accepted

    def listen(self, generation_id: str) -> list[str]:
        """Send what is in the outbox; it all belongs to the generation that was just touched."""
        messages = self.catalog.parts.take_outbox(1_000)
        self.catalog.parts.mark_sent([message.message_id for message in messages])
        found = [message.part_id for message in messages]
        self.announced[generation_id] += found
        return found

    def lease(self, accepted: Accepted, *, owner: str = "worker") -> LeasedPart:
        """The next part of that generation. Fails when there is none."""
        waiting = self.announced[accepted.generation_id]
        while waiting:
            part = self.catalog.parts.lease(waiting.pop(0), owner=owner, lease_s=LEASE_S)
            if part is not None:
                return part
        raise AssertionError("no part of this generation can be leased")

    def complete(self, part: LeasedPart, result: PartResult | None = None) -> None:
        self.catalog.parts.complete(part, result or RESULTS[part.stage])
        self.listen(part.generation_id)

    def run_to(self, accepted: Accepted, stage: Stage) -> LeasedPart:
        """Work until a part of that stage is leased, and return it."""
        while True:
            part = self.lease(accepted)
            if part.stage is stage:
                return part
            if part.stage is Stage.PARSE:
                content = self.content[accepted.generation_id]
                self.catalog.parts.set_content(
                    part, sha256=sha256_of(content), etag=f"etag-{content}"
                )
            self.complete(part)

    def ingest(self, key: str = "hr/handbook.pdf", content: str = "one") -> Accepted:
        """Accept a new document and take it all the way."""
        accepted = self.accept(key, content)
        part = self.run_to(accepted, Stage.ACTIVATE)
        assert self.catalog.parts.activate(part, num_points=NUM_CHUNKS)
        return accepted

    def record(self, accepted: Accepted) -> DocumentRecord:
        with self.catalog.snapshot(self.principal) as snapshot:
            return snapshot.document(accepted.document_id)

    def shows(self, accepted: Accepted) -> bool:
        """Whether the generation is visible now."""
        with self.catalog.snapshot(self.principal) as snapshot:
            return accepted.generation_id in snapshot.active([accepted.generation_id])

    def is_known(self, accepted: Accepted) -> bool:
        """Whether the document is there at all."""
        try:
            self.record(accepted)
        except NotFound:
            return False
        return True
