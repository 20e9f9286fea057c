"""Objects that come and go (contracts.md, Buckets)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, select, update

from core.adapters.catalog.acceptance import (
    add_job,
    add_version,
    collection_of,
    find_same,
    lock_or_create,
)
from core.adapters.catalog.database import clean, insert_new
from core.adapters.catalog.redaction import clear_quotes
from core.adapters.catalog.tables import documents, generations, hints, parts, versions
from core.adapters.catalog.work import add_parts, announce, close_generations, lock_document
from core.domain.documents import KnownObject
from core.errors import NotFound, NotPermitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import AnyRow, Database
    from core.domain.access import Principal
    from core.domain.documents import Accepted, NewPart, ObservedObject, Queue
    from core.ports.clock import Clock

_PAGE = 1_000


class SqlIntake:
    """Implements `core.ports.catalog.IntakeCatalog`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def accept(
        self,
        principal: Principal,
        observed: ObservedObject,
        *,
        pipeline_fingerprint: str,
        first_part: NewPart,
        queue: Queue,
    ) -> Accepted:
        collection = collection_of(observed.key)
        if not principal.may_see(collection):
            raise NotPermitted(
                "this key may not write to that collection", hint="use a key that may"
            )

        def work(tx: Connection) -> Accepted:
            now = self._clock.now()
            document = lock_or_create(tx, principal.tenant_id, collection, observed, now)
            same = find_same(tx, document, observed)
            if same is not None:
                return same
            added = add_version(tx, document, observed, pipeline_fingerprint, now)
            add_job(tx, added, document.tenant_id, queue, now)
            add_parts(tx, added.generation_id, [first_part], queue=queue.value, now=now)
            announce(tx, added.generation_id, now)
            return added

        return self._db.write(work)

    def known_objects(self, principal: Principal, bucket: str) -> Iterator[KnownObject]:
        after = ""
        while True:
            rows = self._db.read(partial(_known, principal, bucket, after))
            for row in rows:
                if principal.may_see(row.collection):
                    yield _as_known(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1].key

    def delete(self, principal: Principal, document_id: str, *, tombstone: bool) -> KnownObject:
        def work(tx: Connection) -> KnownObject:
            now = self._clock.now()
            document = lock_document(tx, document_id)
            if (
                document is None
                or document.tenant_id != principal.tenant_id
                or document.deleted_at is not None
                or not principal.may_see(document.collection)
            ):
                raise NotFound("no such document", document_id=document_id)
            this = _KNOWN.where(documents.c.document_id == document_id)
            etag = tx.execute(this).one().etag if tombstone else None
            _bury(tx, document_id, etag, now)
            clear_quotes(tx, document_id, now)
            return _as_known(tx.execute(this).one())

        return self._db.write(work)

    def add_hint(self, tenant_id: str, bucket: str, key: str) -> None:
        now = self._clock.now()
        row = {"tenant_id": tenant_id, "bucket": bucket, "key": clean(key), "created_at": now}
        self._db.write(lambda tx: insert_new(tx, hints, [row]))

    def take_hints(self, limit: int) -> Sequence[tuple[str, str, str]]:
        def work(tx: Connection) -> list[tuple[str, str, str]]:
            rows = tx.execute(
                select(hints)
                .order_by(hints.c.hint_id)
                .limit(limit)
                .with_for_update(skip_locked=True)
            ).all()
            tx.execute(delete(hints).where(hints.c.hint_id.in_([row.hint_id for row in rows])))
            return [(row.tenant_id, row.bucket, row.key) for row in rows]

        return self._db.write(work)


_KNOWN = select(
    documents.c.document_id,
    documents.c.key,
    documents.c.collection,
    documents.c.deleted_at,
    documents.c.tombstone_etag,
    versions.c.etag,
    versions.c.size_bytes,
).join(
    versions,
    and_(
        versions.c.document_id == documents.c.document_id,
        versions.c.version_seq == documents.c.newest_seq,
    ),
)


def _known(principal: Principal, bucket: str, after: str, tx: Connection) -> Sequence[AnyRow]:
    return tx.execute(
        _KNOWN.where(
            documents.c.tenant_id == principal.tenant_id,
            documents.c.bucket == bucket,
            documents.c.key > after,
        )
        .order_by(documents.c.key)
        .limit(_PAGE)
    ).all()


def _as_known(row: AnyRow) -> KnownObject:
    return KnownObject(
        document_id=row.document_id,
        key=row.key,
        etag=row.etag,
        size_bytes=row.size_bytes,
        is_deleted=row.deleted_at is not None,
        tombstone_etag=row.tombstone_etag,
    )


def _bury(tx: Connection, document_id: str, tombstone_etag: str | None, now: datetime) -> None:
    """The one row update that hides the document, and the end of its work and its content."""
    tx.execute(
        update(documents)
        .where(documents.c.document_id == document_id)
        .values(
            active_generation_id=None,
            deleted_at=now,
            updated_at=now,
            tombstone_etag=tombstone_etag,
        )
    )
    close_generations(tx, generations.c.document_id == document_id, now)
    tx.execute(
        update(versions)
        .where(versions.c.document_id == document_id, versions.c.deleted_at.is_(None))
        .values(deleted_at=now)
    )
    # Title and warnings may be words of the document; parts may quote it in their errors.
    tx.execute(
        update(generations)
        .where(generations.c.document_id == document_id)
        .values(title="", warnings=[])
    )
    tx.execute(
        update(parts)
        .where(parts.c.document_id == document_id)
        .values(error_message=None, error_hint=None)
    )
