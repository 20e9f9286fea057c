"""What the pipeline derives from a file's bytes, kept in the artifact bucket.

Everything about the same bytes of one tenant lies under `<tenant>/<sha256>/`, so that deleting
the last document with these bytes is deleting one prefix:

    original                                     the bytes (a citation's version pins them)
    elements/<parser fingerprint>/facts.json.gz  DocumentFacts
    elements/<parser fingerprint>/<first>-<last>.json.gz   list of Page, one object a parse part
    chunks/<chunker fingerprint>.json.gz         list of Chunk
    vectors/<embedder fingerprint>/<sha256 of the texts>.json.gz   one embed part
    pages/<page>@<width>.png                     pictures
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from array import array
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from core.domain.pages import (
    Chunk,
    DocumentFacts,
    Element,
    ElementKind,
    Line,
    Page,
    PageOutcome,
    Rect,
    SourceSpan,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.domain.access import Principal
    from core.ports.object_store import ObjectStore


def content_prefix(tenant_id: str, sha256: str) -> str:
    """The prefix of all artifacts of these bytes, with a closing slash."""
    return f"{tenant_id}/{sha256}/"


def page_to_json(page: Page) -> dict[str, Any]:
    return asdict(page)


def page_from_json(data: dict[str, Any]) -> Page:
    """Raises KeyError, TypeError or ValueError for what `page_to_json` did not make."""
    return Page(
        number=data["number"],
        width=data["width"],
        height=data["height"],
        rotation=data["rotation"],
        label=data["label"],
        text=data["text"],
        lines=tuple(Line(i["start"], i["end"], _rect(i["rect"])) for i in data["lines"]),
        elements=tuple(
            Element(ElementKind(i["kind"]), i["start"], i["end"], i["level"])
            for i in data["elements"]
        ),
        outcome=PageOutcome(data["outcome"]),
        warnings=tuple(data["warnings"]),
    )


def chunk_to_json(chunk: Chunk) -> dict[str, Any]:
    return asdict(chunk)


def chunk_from_json(data: dict[str, Any]) -> Chunk:
    """Raises KeyError, TypeError or ValueError for what `chunk_to_json` did not make."""
    return Chunk(
        ordinal=data["ordinal"],
        text=data["text"],
        heading_path=tuple(data["heading_path"]),
        index_text=data["index_text"],
        spans=tuple(SourceSpan(**span) for span in data["spans"]),
        language=data["language"],
        num_tokens=data["num_tokens"],
        is_table=data["is_table"],
    )


def facts_from_json(data: dict[str, Any]) -> DocumentFacts:
    """Raises KeyError or TypeError for what `asdict` of DocumentFacts did not make."""
    return DocumentFacts(
        page_count=data["page_count"],
        title=data["title"],
        language=data["language"],
        outline=tuple((entry[0], entry[1], entry[2]) for entry in data["outline"]),
        metadata=dict(data["metadata"]),
        warnings=tuple(data["warnings"]),
    )


class Artifacts:
    """Typed reading and writing of artifacts; the store checks the Principal's tenant."""

    def __init__(self, store: ObjectStore, bucket: str) -> None:
        self._store = store
        self.bucket = bucket

    def original_key(self, principal: Principal, sha256: str) -> str:
        return content_prefix(principal.tenant_id, sha256) + "original"

    def write_facts(
        self, principal: Principal, sha256: str, parser: str, facts: DocumentFacts
    ) -> None:
        self._write(principal, sha256, f"elements/{parser}/facts.json.gz", asdict(facts))

    def read_facts(self, principal: Principal, sha256: str, parser: str) -> DocumentFacts:
        """Raises NotFound."""
        return facts_from_json(
            cast(
                "dict[str, Any]",
                self._read(principal, sha256, f"elements/{parser}/facts.json.gz"),
            )
        )

    def write_pages(
        self, principal: Principal, sha256: str, parser: str, pages: Sequence[Page]
    ) -> None:
        """Store the pages of one parse part (consecutive, not empty)."""
        name = f"elements/{parser}/{pages[0].number:06d}-{pages[-1].number:06d}.json.gz"
        self._write(principal, sha256, name, [page_to_json(page) for page in pages])

    def read_pages(
        self, principal: Principal, sha256: str, parser: str, numbers: Iterable[int] | None = None
    ) -> dict[int, Page]:
        """Stored pages by number; all of them, or those asked for. A page that was never stored is
        absent from the result."""
        wanted = None if numbers is None else set(numbers)
        prefix = content_prefix(principal.tenant_id, sha256) + f"elements/{parser}/"
        found: dict[int, Page] = {}
        for stat in self._store.list(principal, self.bucket, prefix):
            name = stat.key.removeprefix(prefix).removesuffix(".json.gz")
            first, _, last = name.partition("-")
            if not last:
                continue
            if wanted is not None and not any(int(first) <= n <= int(last) for n in wanted):
                continue
            raw = self._store.read(principal, self.bucket, stat.key)
            for data in json.loads(gzip.decompress(raw)):
                page = page_from_json(data)
                if wanted is None or page.number in wanted:
                    found[page.number] = page
        return found

    def write_chunks(
        self, principal: Principal, sha256: str, chunker: str, chunks: Sequence[Chunk]
    ) -> None:
        self._write(
            principal, sha256, f"chunks/{chunker}.json.gz", [chunk_to_json(c) for c in chunks]
        )

    def read_chunks(self, principal: Principal, sha256: str, chunker: str) -> list[Chunk]:
        """All chunks in order. Raises NotFound."""
        return [
            chunk_from_json(data)
            for data in cast(
                "list[dict[str, Any]]",
                self._read(principal, sha256, f"chunks/{chunker}.json.gz"),
            )
        ]

    def write_vectors(
        self,
        principal: Principal,
        sha256: str,
        embedder: str,
        texts: Sequence[str],
        vectors: Sequence[Sequence[float]],
    ) -> None:
        numbers = array("f", (value for vector in vectors for value in vector))
        data = {"count": len(vectors), "float32": base64.b64encode(numbers.tobytes()).decode()}
        self._write(principal, sha256, _vectors_name(embedder, texts), data)

    def read_vectors(
        self, principal: Principal, sha256: str, embedder: str, texts: Sequence[str]
    ) -> list[list[float]]:
        """The vectors of exactly these texts, in order. Raises NotFound."""
        data = cast("dict[str, Any]", self._read(principal, sha256, _vectors_name(embedder, texts)))
        numbers = array("f", base64.b64decode(data["float32"]))
        size = len(numbers) // max(1, data["count"])
        return [list(numbers[i : i + size]) for i in range(0, len(numbers), size)]

    def purge(self, principal: Principal, sha256: str) -> int:
        """Delete everything about these bytes; returns how many objects."""
        prefix = content_prefix(principal.tenant_id, sha256)
        return self._store.delete_prefix(principal, self.bucket, prefix)

    def _write(self, principal: Principal, sha256: str, name: str, data: object) -> None:
        key = content_prefix(principal.tenant_id, sha256) + name
        body = gzip.compress(
            json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), 5, mtime=0
        )
        self._store.put(principal, self.bucket, key, body, content_type="application/gzip")

    def _read(self, principal: Principal, sha256: str, name: str) -> object:
        key = content_prefix(principal.tenant_id, sha256) + name
        return json.loads(gzip.decompress(self._store.read(principal, self.bucket, key)))


def _vectors_name(embedder: str, texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode()
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return f"vectors/{embedder}/{digest.hexdigest()}.json.gz"


def _rect(values: Sequence[float]) -> Rect:
    x0, y0, x1, y1 = values
    return (x0, y0, x1, y1)
