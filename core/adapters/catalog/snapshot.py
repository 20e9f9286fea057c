"""One consistent view of what may be shown (contracts.md, Visibility)."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, select

from core.adapters.catalog.cursors import check_limit, from_cursor, to_cursor
from core.adapters.catalog.records import (
    document_records,
    job_records,
    select_documents,
    select_jobs,
    visible,
)
from core.adapters.catalog.status import facts_key, keys_of
from core.adapters.catalog.tables import (
    collections,
    contents,
    documents,
    generations,
    jobs,
    versions,
)
from core.domain.documents import ActiveVersion
from core.errors import Gone, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Select

    from core.adapters.catalog.database import AnyRow
    from core.domain.access import Principal
    from core.domain.documents import DocumentRecord, DocumentStatus, IngestJob

_IDS_PER_QUERY = 500


class SqlSnapshot:
    """Implements `core.ports.catalog.Snapshot` on an open read transaction.

    May be handed from thread to thread; its queries take turns.
    """

    def __init__(self, connection: Connection, principal: Principal) -> None:
        self._connection = connection
        self._principal = principal
        self._lock = threading.Lock()

    def active(self, generation_ids: Sequence[str]) -> dict[str, ActiveVersion]:
        wanted = list(dict.fromkeys(generation_ids))
        found: dict[str, ActiveVersion] = {}
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            ids = wanted[start : start + _IDS_PER_QUERY]
            query = _select_versions(self._principal).where(
                documents.c.active_generation_id.in_(ids),
                generations.c.generation_id == documents.c.active_generation_id,
            )
            found.update({row.generation_id: _as_active(row) for row in self._all(query)})
        return found

    def document(self, document_id: str) -> DocumentRecord:
        with self._lock:
            rows = self._connection.execute(
                select_documents(self._principal).where(documents.c.document_id == document_id)
            ).all()
            if not rows:
                raise NotFound("no such document", document_id=document_id)
            return document_records(self._connection, rows)[0]

    def version(self, document_id: str, sha256: str | None = None) -> ActiveVersion:
        query = _select_versions(self._principal).where(documents.c.document_id == document_id)
        is_active = generations.c.generation_id == documents.c.active_generation_id
        if sha256 is None:
            rows = self._all(query.where(is_active))
        else:
            rows = self._all(
                query.where(versions.c.sha256 == sha256, generations.c.activated_at.is_not(None))
                .order_by(versions.c.version_seq.desc())
                .limit(1)
            )
        if not rows:
            raise NotFound("no such document, or none of its versions is ready")
        row = rows[0]
        is_gone = row.bytes_gone_at or row.version_deleted_at or row.purging_since
        if is_gone is not None:
            raise Gone("this version of the document is not kept any more")
        return _as_active(row)

    def documents(
        self,
        *,
        status: DocumentStatus | None = None,
        collection: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[DocumentRecord], str | None]:
        query = select_documents(self._principal)
        if status is not None:
            query = query.where(facts_key().in_(keys_of(status)))
        if collection is not None:
            query = query.where(documents.c.collection == collection)
        if cursor is not None:
            query = query.where(documents.c.document_id < from_cursor(cursor, "doc"))
        query = query.order_by(documents.c.document_id.desc())
        with self._lock:
            rows, more = self._page(query, limit)
            records = document_records(self._connection, rows)
        return records, to_cursor(records[-1].document_id) if more else None

    def collections(self) -> list[tuple[str, int]]:
        query = (
            select(collections.c.name, func.count(documents.c.document_id).label("num"))
            .outerjoin(
                documents,
                and_(
                    documents.c.tenant_id == collections.c.tenant_id,
                    documents.c.collection == collections.c.name,
                    documents.c.deleted_at.is_(None),
                ),
            )
            .where(collections.c.tenant_id == self._principal.tenant_id)
            .group_by(collections.c.name)
            .order_by(collections.c.name)
        )
        return [
            (row.name, row.num) for row in self._all(query) if self._principal.may_see(row.name)
        ]

    def job(self, job_id: str) -> IngestJob:
        with self._lock:
            rows = self._connection.execute(
                select_jobs(self._principal).where(jobs.c.job_id == job_id)
            ).all()
            if not rows:
                raise NotFound("no such job", job_id=job_id)
            return job_records(self._connection, rows)[0]

    def jobs(
        self, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[IngestJob], str | None]:
        query = select_jobs(self._principal).order_by(jobs.c.job_id.desc())
        if cursor is not None:
            query = query.where(jobs.c.job_id < from_cursor(cursor, "job"))
        with self._lock:
            rows, more = self._page(query, limit)
            records = job_records(self._connection, rows)
        return records, to_cursor(records[-1].job_id) if more else None

    def _all(self, query: Select[Any]) -> Sequence[AnyRow]:
        with self._lock:
            return self._connection.execute(query).all()

    def _page(self, query: Select[Any], limit: int) -> tuple[Sequence[AnyRow], bool]:
        check_limit(limit)
        rows = self._connection.execute(query.limit(limit + 1)).all()
        return rows[:limit], len(rows) > limit


def _select_versions(principal: Principal) -> Select[Any]:
    """Visible versions of living documents, with the generation that shows them."""
    return _version_rows().where(visible(principal), documents.c.deleted_at.is_(None))


@cache
def _version_rows() -> Select[Any]:
    return (
        select(
            generations.c.generation_id,
            documents.c.document_id,
            versions.c.version_seq,
            versions.c.sha256,
            generations.c.title,
            documents.c.collection,
            documents.c.bucket,
            documents.c.key,
            generations.c.page_count,
            versions.c.etag,
            generations.c.parser_fingerprint,
            generations.c.pipeline_fingerprint,
            versions.c.bytes_gone_at,
            versions.c.deleted_at.label("version_deleted_at"),
            contents.c.purging_since,
        )
        .select_from(documents)
        .join(generations, generations.c.document_id == documents.c.document_id)
        .join(
            versions,
            and_(
                versions.c.document_id == generations.c.document_id,
                versions.c.version_seq == generations.c.version_seq,
            ),
        )
        .outerjoin(
            contents,
            and_(
                contents.c.tenant_id == versions.c.tenant_id,
                contents.c.sha256 == versions.c.sha256,
            ),
        )
    )


def _as_active(row: AnyRow) -> ActiveVersion:
    return ActiveVersion(
        generation_id=row.generation_id,
        document_id=row.document_id,
        version_seq=row.version_seq,
        sha256=row.sha256 or "",
        title=row.title,
        collection=row.collection,
        bucket=row.bucket,
        key=row.key,
        page_count=row.page_count or 0,
        etag=row.etag,
        parser_fingerprint=row.parser_fingerprint or row.pipeline_fingerprint,
    )
