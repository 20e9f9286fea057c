"""Buckets against the catalog: what was put is accepted, what is gone is deleted.

The listing is the truth about what lies in a bucket, and yet every decision is checked again on the
object itself, since a listing is old by the time it ends:

- new or changed: HEAD, then accept with the etag found there;
- deleted in the catalog but still listed: accepted again only when two complete listings show it
  (the API removes the object and its document one after the other), and never under a tombstone;
- missing: deleted only when two complete listings agree and HEAD finds nothing; none at all when
  more than a fifth (and more than 20) of the bucket's documents would go, unless that is allowed.

A listing that breaks off decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.domain.access import Principal
from core.domain.documents import KnownObject, ObjectStat, ObservedObject, Queue
from core.errors import ErrorKind, NotFound, PinciteError
from core.logging import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.ports.catalog import IntakeCatalog
    from core.ports.object_store import ObjectStore
    from ingest.intake import Intake

BULK_FROM = 9  # so many new objects in one listing are a batch that nobody waits for one by one
MAX_DELETED_FRACTION = 0.2
MAX_DELETED = 20

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one complete listing led to. `num_held_back` documents would be deleted but were too
    many at once; `num_unconfirmed` wait for a second listing."""

    num_objects: int
    num_accepted: int
    num_deleted: int
    num_unconfirmed: int
    num_held_back: int


@dataclass
class _Memory:
    """What the last complete listing saw, to be confirmed by the next."""

    missing: frozenset[str] = frozenset()
    undeleted: frozenset[tuple[str, str]] = frozenset()
    num_held_back: int = 0


@dataclass
class BucketWatch:
    """Reconciles the buckets of a deployment. Not thread-safe: one thread owns it.

    Args:
        tenant_ids: documents bucket -> tenant id.
        accept_deletes: let any number of documents go.
        may_go_on: asked between objects; False ends the round early (leadership was lost).
    """

    object_store: ObjectStore
    catalog: IntakeCatalog
    intake: Intake
    tenant_ids: dict[str, str]
    read_only: frozenset[str] = frozenset()
    accept_deletes: bool = False
    may_go_on: Callable[[], bool] = field(default=lambda: True)
    _memories: dict[str, _Memory] = field(default_factory=dict)

    def reconcile(self, bucket: str) -> Reconciled:
        """Compare one bucket. Raises ObjectStoreUnavailable, CatalogUnavailable."""
        principal = self._principal(bucket)
        # The catalog first: what it knew before the listing began and the listing lacks, is gone.
        known = {found.key: found for found in self.catalog.known_objects(principal, bucket)}
        listed = {
            stat.key: stat
            for stat in self.object_store.list(principal, bucket)
            if not stat.key.endswith("/")
        }
        memory = self._memories.setdefault(bucket, _Memory())
        num_accepted = self._accept_listed(principal, listed, known, memory)
        living = [found for found in known.values() if not found.is_deleted]
        missing = [found for found in living if found.key not in listed]
        num_held_back = self._num_too_many(len(missing), len(living))
        if num_held_back and num_held_back != memory.num_held_back:
            _log.error(
                "reconcile.stopped",
                bucket=bucket,
                num_missing=num_held_back,
                num_documents=len(living),
                hint="when this is meant, set objects.accept_deletes (pincite up --accept-deletes)",
            )
        memory.num_held_back = num_held_back
        confirmed = [found for found in missing if found.document_id in memory.missing]
        num_deleted = 0
        if not num_held_back:
            num_deleted = sum(self._delete_gone(principal, bucket, found) for found in confirmed)
        memory.missing = frozenset(found.document_id for found in missing)
        return Reconciled(
            num_objects=len(listed),
            num_accepted=num_accepted,
            num_deleted=num_deleted,
            num_unconfirmed=len(missing) - len(confirmed),
            num_held_back=num_held_back,
        )

    def look_at(self, bucket: str, key: str) -> bool:
        """Act on a hint about one object. False when only a listing can decide: there is no such
        object, or the bucket is read-only and a tombstone may lie on it. Raises as `reconcile`.
        """
        if bucket not in self.tenant_ids or key.endswith("/"):
            return True
        if bucket in self.read_only:
            return False
        principal = self._principal(bucket)
        stat = self.object_store.head(principal, bucket, key)
        if stat is None:
            return False
        self._accept(principal, stat, Queue.INTERACTIVE)
        return True

    def _principal(self, bucket: str) -> Principal:
        return Principal.system(self.tenant_ids[bucket], "watch")

    def _accept_listed(
        self,
        principal: Principal,
        listed: dict[str, ObjectStat],
        known: dict[str, KnownObject],
        memory: _Memory,
    ) -> int:
        wanted: list[ObjectStat] = []
        undeleted: set[tuple[str, str]] = set()
        for key, stat in listed.items():
            found = known.get(key)
            if found is None or not _is_same(found, stat):
                wanted.append(stat)
            elif found.is_deleted and found.tombstone_etag != stat.etag:
                undeleted.add((key, stat.etag))
                if (key, stat.etag) in memory.undeleted:
                    wanted.append(stat)
        memory.undeleted = frozenset(undeleted)
        queue = Queue.BULK if len(wanted) >= BULK_FROM else Queue.INTERACTIVE
        num_accepted = 0
        for stat in wanted:
            if not self.may_go_on():
                break
            num_accepted += self._accept_if_there(principal, stat, queue)
        return num_accepted

    def _accept_if_there(self, principal: Principal, listed: ObjectStat, queue: Queue) -> bool:
        """An object that can never be accepted (a name nobody can ask for) must not keep those
        behind it from being seen."""
        try:
            stat = self.object_store.head(principal, listed.bucket, listed.key)
            return stat is not None and self._accept(principal, stat, queue)
        except PinciteError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            _log.warning("object.refused", code=error.code, error=error.message)
            return False

    def _accept(self, principal: Principal, stat: ObjectStat, queue: Queue) -> bool:
        accepted = self.intake.accept(
            principal,
            ObservedObject(
                bucket=stat.bucket,
                key=stat.key,
                etag=stat.etag,
                size_bytes=stat.size_bytes,
                last_modified=stat.last_modified,
                content_type=stat.content_type,
            ),
            queue=queue,
        )
        if accepted.is_new:
            _log.info("object.accepted", document_id=accepted.document_id, job_id=accepted.job_id)
        return accepted.is_new

    def _num_too_many(self, num_missing: int, num_living: int) -> int:
        """How many deletions are held back; 0 when they may go on."""
        is_too_many = num_missing > MAX_DELETED and num_missing > MAX_DELETED_FRACTION * num_living
        return num_missing if is_too_many and not self.accept_deletes else 0

    def _delete_gone(self, principal: Principal, bucket: str, found: KnownObject) -> bool:
        if not self.may_go_on():
            return False
        if self.object_store.head(principal, bucket, found.key) is not None:
            return False
        try:
            self.catalog.delete(principal, found.document_id, tombstone=False)
        except NotFound:  # somebody else deleted it meanwhile
            return False
        _log.info("object.gone", document_id=found.document_id)
        return True


def _is_same(known: KnownObject, stat: ObjectStat) -> bool:
    return known.etag == stat.etag and known.size_bytes == stat.size_bytes
