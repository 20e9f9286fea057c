"""What an announced object becomes: a new version of its document, or nothing."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from core.adapters.catalog.database import clean, insert_new
from core.adapters.catalog.tables import collections, documents, generations, jobs, versions
from core.adapters.catalog.work import close_generations
from core.domain.documents import Accepted, Stage
from core.ids import generation_id as make_generation_id
from core.ids import new_collection_id, new_document_id, new_job_id

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import AnyRow
    from core.domain.documents import ObservedObject, Queue

DEFAULT_COLLECTION = "default"


def collection_of(key: str) -> str:
    """The first path segment of a key, `default` for an object at the root."""
    first, slash, _ = key.partition("/")
    return first if slash and first else DEFAULT_COLLECTION


def lock_or_create(
    tx: Connection, tenant_id: str, collection: str, observed: ObservedObject, now: datetime
) -> AnyRow:
    """The locked row of the document with that key; new ones have no version yet."""
    where = and_(
        documents.c.tenant_id == tenant_id,
        documents.c.bucket == observed.bucket,
        documents.c.key == observed.key,
    )
    locked = select(documents).where(where).with_for_update(key_share=True)
    found = tx.execute(locked).one_or_none()
    if found is not None:
        return found
    insert_new(
        tx,
        collections,
        [
            {
                "collection_id": new_collection_id(),
                "tenant_id": tenant_id,
                "name": collection,
                "created_at": now,
            }
        ],
    )
    insert_new(
        tx,
        documents,
        [
            {
                "document_id": new_document_id(),
                "tenant_id": tenant_id,
                "bucket": observed.bucket,
                "key": observed.key,
                "collection": collection,
                "newest_seq": 0,
                "created_at": now,
                "updated_at": now,
            }
        ],
    )
    return tx.execute(locked).one()


def _version(tx: Connection, document_id: str, version_seq: int) -> AnyRow | None:
    return tx.execute(
        select(versions, jobs.c.job_id)
        .join(jobs, jobs.c.generation_id == versions.c.generation_id)
        .where(versions.c.document_id == document_id, versions.c.version_seq == version_seq)
    ).one_or_none()


def find_same(tx: Connection, document: AnyRow, observed: ObservedObject) -> Accepted | None:
    """The newest version, if the object is what it was made of: then there is nothing to do.

    The same bytes under another etag are noted as such, so that a listing shows no difference.
    """
    newest = _version(tx, document.document_id, document.newest_seq)
    if newest is None:
        return None
    if document.deleted_at is not None:
        # A listing that was made before the delete must not bring the document back.
        is_listing = observed.sha256 is None
        is_same = is_listing and document.tombstone_etag == observed.etag
    elif newest.sha256 is not None and observed.sha256 is not None:
        is_same = newest.sha256 == observed.sha256
        if is_same:
            _note_etag(tx, newest, observed)
    else:
        is_same = newest.etag == observed.etag and newest.size_bytes == observed.size_bytes
    if not is_same:
        return None
    return Accepted(
        document_id=newest.document_id,
        version_seq=newest.version_seq,
        generation_id=newest.generation_id,
        job_id=newest.job_id,
        is_new=False,
    )


def _note_etag(tx: Connection, version: AnyRow, observed: ObservedObject) -> None:
    tx.execute(
        update(versions)
        .where(
            versions.c.document_id == version.document_id,
            versions.c.version_seq == version.version_seq,
        )
        .values(etag=observed.etag, size_bytes=observed.size_bytes)
    )


def add_version(
    tx: Connection,
    document: AnyRow,
    observed: ObservedObject,
    pipeline_fingerprint: str,
    now: datetime,
) -> Accepted:
    """The next version with its generation; unfinished older ones are given up."""
    version_seq = document.newest_seq + 1
    generation_id = make_generation_id(document.document_id, version_seq, pipeline_fingerprint)
    is_unfinished = and_(
        generations.c.document_id == document.document_id, generations.c.activated_at.is_(None)
    )
    close_generations(tx, is_unfinished, now)
    tx.execute(
        update(documents)
        .where(documents.c.document_id == document.document_id)
        .values(
            newest_seq=version_seq,
            shown_generation_id=generation_id,
            updated_at=now,
            deleted_at=None,
            tombstone_etag=None,
        )
    )
    tx.execute(
        versions.insert().values(
            document_id=document.document_id,
            version_seq=version_seq,
            tenant_id=document.tenant_id,
            generation_id=generation_id,
            etag=observed.etag,
            size_bytes=observed.size_bytes,
            sha256=observed.sha256,
            content_type=observed.content_type,
            last_modified=observed.last_modified,
            accepted_at=now,
        )
    )
    tx.execute(
        generations.insert().values(
            generation_id=generation_id,
            tenant_id=document.tenant_id,
            document_id=document.document_id,
            version_seq=version_seq,
            pipeline_fingerprint=pipeline_fingerprint,
            stage=Stage.PARSE.value,
            num_open=1,
            title=clean(PurePosixPath(observed.key).stem or observed.key, 500),
            pages_done=0,
            num_failed_pages=0,
            failed_pages=[],
            warnings=[],
            num_terms=0,
            created_at=now,
        )
    )
    return Accepted(
        document_id=document.document_id,
        version_seq=version_seq,
        generation_id=generation_id,
        job_id=new_job_id(),
        is_new=True,
    )


def add_job(
    tx: Connection, accepted: Accepted, tenant_id: str, queue: Queue, now: datetime
) -> None:
    """The user-visible run that makes this version searchable."""
    tx.execute(
        jobs.insert().values(
            job_id=accepted.job_id,
            tenant_id=tenant_id,
            document_id=accepted.document_id,
            version_seq=accepted.version_seq,
            generation_id=accepted.generation_id,
            queue=queue.value,
            created_at=now,
        )
    )
