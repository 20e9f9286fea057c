"""What keeps the index and the artifact bucket equal to the catalog when nobody waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.domain.access import Principal
from core.lexical.bm25 import encode_document
from core.logging import get_logger

if TYPE_CHECKING:
    from core.artifacts import Artifacts
    from core.domain.search import SparseVector
    from core.ports.catalog import Catalog
    from core.ports.clock import Clock
    from core.ports.vector_index import VectorIndex

PURGES_AT_ONCE = 50
MAX_DRIFT = 0.2  # of the average length used in stored BM25 values, before they are rewritten
_DAY_S = 86_400.0

_log = get_logger(__name__)


@dataclass
class Upkeep:
    """Args: `purge_after_s` a dead generation's points outlive it, for questions that still run;
    `retention_days` the bytes of superseded versions are kept."""

    catalog: Catalog
    vector_index: VectorIndex
    artifacts: Artifacts
    clock: Clock
    purge_after_s: float
    retention_days: int
    _suspects: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def purge_generations(self) -> int:
        """Remove the points of generations nobody can see any more."""
        operations = self.catalog.operations
        dead = operations.dead_generations(older_than_s=self.purge_after_s, limit=PURGES_AT_ONCE)
        for found in dead:
            self.vector_index.delete_generation(
                _principal(found.tenant_id), found.document_id, found.generation_id
            )
            operations.mark_purged(found.generation_id)
        if dead:
            _log.info("generations.purged", num_generations=len(dead))
        return len(dead)

    def purge_content(self) -> int:
        """Remove bytes and artifacts that no version refers to (superseded ones after
        retention)."""
        operations = self.catalog.operations
        dead = operations.take_dead_content(
            retention_s=self.retention_days * _DAY_S, limit=PURGES_AT_ONCE
        )
        for found in dead:
            self.artifacts.purge(_principal(found.tenant_id), found.sha256)
            operations.finish_dead_content(found)
        if dead:
            _log.info("content.purged", num_contents=len(dead))
        return len(dead)

    def find_orphans(self) -> int:
        """Note generations that have points and no right to them; `remove_orphans` does the rest.

        Such points are what a worker wrote that was frozen past its lease, and past the purge.
        """
        now = self.clock.monotonic()
        found: dict[tuple[str, str, str], float] = {}
        for tenant_id in self.catalog.operations.tenants():
            for document_id, generation_id in self.vector_index.generations(_principal(tenant_id)):
                if not self.catalog.operations.is_live_generation(document_id, generation_id):
                    orphan = (tenant_id, document_id, generation_id)
                    found[orphan] = self._suspects.get(orphan, now)
        self._suspects = found
        return len(found)

    def remove_orphans(self) -> int:
        """Delete noted generations that are still dead once running questions are over."""
        now = self.clock.monotonic()
        num_removed = 0
        for orphan, seen_at in list(self._suspects.items()):
            tenant_id, document_id, generation_id = orphan
            if now - seen_at < self.purge_after_s:
                continue
            del self._suspects[orphan]
            if not self.catalog.operations.is_live_generation(document_id, generation_id):
                self.vector_index.delete_generation(
                    _principal(tenant_id), document_id, generation_id
                )
                num_removed += 1
                _log.warning("orphan.removed", document_id=document_id, generation_id=generation_id)
        return num_removed

    def refresh_lexical(self) -> int:
        """Rewrite stored BM25 values when chunks have become much longer or shorter on average.

        Only while nothing waits to be ingested. Returns how many points were rewritten.
        """
        manifest = self.vector_index.manifest()
        average = self.catalog.operations.average_terms()
        if manifest is None or not average or self.catalog.operations.counts().queue_depth:
            return 0
        if abs(manifest.average_terms - average) <= MAX_DRIFT * average:
            return 0
        num_points = 0
        for tenant_id in self.catalog.operations.tenants():
            num_points += self.vector_index.reencode(_principal(tenant_id), average, _encode)
        _log.info("lexical.refreshed", num_points=num_points, average_terms=round(average, 1))
        return num_points


def _principal(tenant_id: str) -> Principal:
    return Principal.system(tenant_id, "sweeper")


def _encode(index_text: str, language: str, average_terms: float) -> SparseVector:
    return encode_document(index_text, language, average_terms)
