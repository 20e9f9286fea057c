"""The catalog: the truth about documents, work and visibility, in seven parts.

All writes are one transaction a call. Raises CatalogUnavailable when the database does not answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from core.domain.access import Principal, Scope
    from core.domain.documents import (
        Accepted,
        ActiveVersion,
        DocumentRecord,
        DocumentStatus,
        IngestJob,
        KnownObject,
        LeasedPart,
        NewPart,
        ObservedObject,
        PartResult,
        Queue,
    )
    from core.domain.operations import (
        CreatedKey,
        DeadContent,
        DeadGeneration,
        Heartbeat,
        IngestCounts,
        OutboxMessage,
    )
    from core.ports.conversations import ConversationCatalog


class IntakeCatalog(Protocol):
    """What lies in the buckets, and what should become of it."""

    def accept(
        self,
        principal: Principal,
        observed: ObservedObject,
        *,
        pipeline_fingerprint: str,
        first_part: NewPart,
        queue: Queue,
    ) -> Accepted:
        """Document, version, generation, job, first part and outbox row in ONE transaction.

        A no-op (`is_new` False, naming the existing version) when the newest version of that key
        has the same etag and size, or the same sha256, and is not deleted. A deleted document comes
        back with a new version_seq; so does one whose bytes changed. The collection is the key's
        first path segment (`default` at the root), created when new.

        The same bytes under another etag move the recorded etag and size. An object that was found
        in a listing (no sha256) under the etag of a tombstone is a no-op as well.
        Raises NotPermitted for a collection the Principal may not see.
        """

    def known_objects(self, principal: Principal, bucket: str) -> Iterator[KnownObject]:
        """Every document of the bucket in key order (by code point), deleted ones included."""

    def delete(self, principal: Principal, document_id: str, *, tombstone: bool) -> KnownObject:
        """Hide the document for all snapshots opened from now on and stop its work.

        `tombstone` remembers the present etag, so that reconcile leaves the object alone (buckets
        mapped read-only). Quotes in stored answers are cleared in the same transaction.
        Raises NotFound (also for another tenant's, or a collection the Principal may not see).
        """

    def add_hint(self, tenant_id: str, bucket: str, key: str) -> None:
        """An event said something about this key: have it looked at soon."""

    def take_hints(self, limit: int) -> Sequence[tuple[str, str, str]]:
        """Remove and return up to `limit` hints as (tenant_id, bucket, key), oldest first."""


class PartCatalog(Protocol):
    """Leases, attempts, stages. Every write is fenced by the lease's epoch: LeaseLost otherwise."""

    def lease(self, part_id: str, *, owner: str, lease_s: float) -> LeasedPart | None:
        """Take the part, counting the attempt in this transaction, before any work.

        None when it is done, failed, not due, held by a living lease, or its version is no longer
        wanted (deleted, or superseded by a newer accepted version).
        An attempt beyond the third fails the part as `quarantined` and returns None.
        """

    def renew(self, part: LeasedPart, *, lease_s: float) -> LeasedPart:
        """Move the expiry. Raises LeaseLost, also when the document was deleted meanwhile."""

    def set_content(self, part: LeasedPart, *, sha256: str, etag: str) -> str | None:
        """Record the version's hash before artifacts are written.

        Returns None to go on, or the generation_id of the document's active generation when these
        very bytes are what is already active under the same pipeline fingerprint (the new version
        is then closed as a no-op and the part is done).
        Raises Conflict while artifacts of the same content are being purged (retry later).
        """

    def complete(self, part: LeasedPart, result: PartResult) -> None:
        """Mark done and add what follows, with outbox rows, in one transaction."""

    def activate(self, part: LeasedPart, *, num_points: int) -> bool:
        """Flip the document to this generation and complete the part, in one transaction.

        Refuses with InternalError unless `num_points` equals the generation's number of chunks and
        is above 0. False when a newer version is already active or the document was deleted (the
        generation is then dead).
        """

    def release(self, part: LeasedPart, *, retry_at: datetime, code: str, message: str) -> None:
        """Give the part back after a failure that may pass (a server was down): waiting, not due
        before `retry_at`. The attempt is given back, since the part was not at fault."""

    def fail(
        self, part: LeasedPart, *, code: str, message: str, hint: str | None, is_final: bool
    ) -> None:
        """Record a failed attempt. Final ones (DocumentError) fail the part with its code; others
        wait for another attempt, and fail as `quarantined` after the third."""

    def sweep(self, *, limit: int = 500) -> int:
        """Put expired leases back to waiting, and write outbox rows for every due part that has
        none pending (also those lost by the broker: not leased `republish_after_s` after being
        sent). Returns how many outbox rows were written."""

    def take_outbox(self, limit: int) -> Sequence[OutboxMessage]:
        """Claim up to `limit` unsent messages for a few seconds (others skip them meanwhile)."""

    def mark_sent(self, message_ids: Sequence[int]) -> None: ...

    def retry(self, principal: Principal, job_id: str) -> IngestJob:
        """Reset failed parts of a job to waiting with no attempts, and the whole index stage if it
        had begun. Raises NotFound, Conflict (a newer version exists, nothing failed, or what the
        failed attempt left is just being purged)."""

    def cancel(self, principal: Principal, job_id: str) -> IngestJob:
        """Fail all unfinished parts as `cancelled`. Raises NotFound, Conflict when finished."""


class Snapshot(Protocol):
    """One consistent view. Open it *before* searching; it decides what may be shown."""

    def active(self, generation_ids: Sequence[str]) -> dict[str, ActiveVersion]:
        """Those of the given generations that are visible to the Principal in this snapshot."""

    def document(self, document_id: str) -> DocumentRecord:
        """Raises NotFound (also for what the Principal may not see)."""

    def version(self, document_id: str, sha256: str | None = None) -> ActiveVersion:
        """The active version, or the one with that hash if its bytes are still kept.

        Raises NotFound (unknown, deleted, not permitted), Gone (superseded and expired).
        """

    def documents(
        self,
        *,
        status: DocumentStatus | None = None,
        collection: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[DocumentRecord], str | None]:
        """A page of documents, newest first, and the next cursor. Deleted ones are not listed."""

    def collections(self) -> list[tuple[str, int]]:
        """(name, number of documents that are not deleted), by name."""

    def job(self, job_id: str) -> IngestJob: ...

    def jobs(
        self, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[IngestJob], str | None]: ...


class AnswerCatalog(Protocol):
    """Stored answers, exactly as they were sent (a JSON object and its events)."""

    def store(
        self,
        principal: Principal,
        answer: dict[str, Any],
        events: Sequence[dict[str, Any]],
        document_ids: Sequence[str],
    ) -> None:
        """Keep the object, its events and which documents any word of it comes from.

        A later `delete` of one of these clears its quotes and the answer text that they support
        (covered character by character, so that offsets stay valid); of the events only those that
        carry the whole answer stay, with the cleared one in it. Quotes of documents deleted since
        the question started are cleared likewise. Events are numbered by their `seq`, or from 1.
        Raises Conflict when the id is taken, InvalidInput when there is none.
        """

    def load(self, principal: Principal, answer_id: str) -> dict[str, Any]:
        """Raises NotFound (also for another tenant's, or another subject's without scope ADMIN)."""

    def events(
        self, principal: Principal, answer_id: str, after_seq: int
    ) -> list[dict[str, Any]]: ...


class AccessCatalog(Protocol):
    """Tenants and keys. Secrets are stored as SHA-256 only."""

    def ensure_tenant(self, name: str) -> str:
        """The tenant's id, created when new."""

    def create_key(  # noqa: PLR0913  # a key has that many facts
        self,
        tenant_id: str,
        *,
        name: str,
        scopes: frozenset[Scope],
        collections: frozenset[str] | None = None,
        expires_at: datetime | None = None,
        secret: str | None = None,
        is_single_use: bool = False,
    ) -> CreatedKey:
        """A new key; its secret is shown this once. `secret` registers one made elsewhere: again
        at each start if need be. Raises Conflict when it belongs to another tenant or was revoked.
        """

    def authenticate(self, secret: str) -> Principal:
        """Raises NotAuthenticated for unknown, expired, revoked or used keys. A single-use key is
        used up by this call."""

    def keys(self, principal: Principal) -> list[CreatedKey]:
        """All keys of the tenant, without their secrets."""

    def revoke_key(self, principal: Principal, key_id: str) -> None: ...


class OperationsCatalog(Protocol):
    """What the sweeper and the operations page need."""

    def take_leadership(self, name: str, *, owner: str, lease_s: float) -> bool:
        """Become or stay the one holder of that name; False while another's lease lives."""

    def counts(self, tenant_id: str | None = None) -> IngestCounts: ...

    def beat(self, heartbeat: Heartbeat) -> None:
        """Record that a process lives and what it does."""

    def heartbeats(self, *, max_age_s: float) -> list[Heartbeat]: ...

    def dead_generations(self, *, older_than_s: float, limit: int) -> list[DeadGeneration]:
        """Superseded, abandoned, failed or deleted generations whose points may be purged by now.
        A failed one is claimed for a minute: `retry` waits for its purge."""

    def mark_purged(self, generation_id: str) -> None: ...

    def take_dead_content(self, *, retention_s: float, limit: int) -> list[DeadContent]:
        """Contents (tenant, sha256) that no living or retained version refers to, marked as being
        purged. Versions of deleted documents count at once, superseded ones after `retention_s`."""

    def finish_dead_content(self, content: DeadContent) -> None: ...

    def is_live_generation(self, document_id: str, generation_id: str) -> bool:
        """Whether points of it have a right to exist (active, or being built)."""

    def average_terms(self) -> float | None:
        """Mean number of index terms a chunk over active generations; None when there are none."""

    def tenants(self) -> list[str]: ...

    def audit(
        self, principal: Principal, *, action: str, target: str, request_id: str, outcome: str
    ) -> None: ...


class Catalog(Protocol):
    """The whole of it. `snapshot` is a context manager around one read transaction."""

    @property
    def intake(self) -> IntakeCatalog: ...
    @property
    def parts(self) -> PartCatalog: ...
    @property
    def answers(self) -> AnswerCatalog: ...
    @property
    def conversations(self) -> ConversationCatalog: ...
    @property
    def access(self) -> AccessCatalog: ...
    @property
    def operations(self) -> OperationsCatalog: ...

    def snapshot(self, principal: Principal) -> AbstractContextManager[Snapshot]: ...

    def migrate(self) -> None:
        """Bring the schema to this release's; safe to call from several processes."""

    def check(self) -> None:
        """Raises CatalogUnavailable unless the database answers and has this release's schema."""

    def close(self) -> None: ...
