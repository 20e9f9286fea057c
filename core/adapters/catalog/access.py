"""Tenants and keys. A secret is known by its SHA-256 only: it is random, so no salt is needed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from core.adapters.catalog.database import clean, insert_new
from core.adapters.catalog.tables import keys, tenants
from core.domain.access import Principal, Scope
from core.domain.operations import CreatedKey
from core.errors import Conflict, NotAuthenticated, NotFound
from core.ids import new_key_id, new_tenant_id

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from core.adapters.catalog.database import AnyRow, Database
    from core.ports.clock import Clock

SECRET_PREFIX = "pck_"
_SECRET_BYTES = 32


class SqlAccess:
    """Implements `core.ports.catalog.AccessCatalog`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def ensure_tenant(self, name: str) -> str:
        def work(tx: Connection) -> str:
            row = {"tenant_id": new_tenant_id(), "name": name, "created_at": self._clock.now()}
            insert_new(tx, tenants, [row])
            query = select(tenants.c.tenant_id).where(tenants.c.name == name)
            return str(tx.execute(query).scalar_one())

        return self._db.write(work, is_durable=True)

    def create_key(  # noqa: PLR0913 - the port's signature
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
        shown = secret or SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        row = {
            "key_id": new_key_id(),
            "tenant_id": tenant_id,
            "name": clean(name, 200),
            "secret_sha256": _digest(shown),
            "scopes": sorted(scopes),
            "collections": None if collections is None else sorted(collections),
            "is_single_use": is_single_use,
            "created_at": self._clock.now(),
            "expires_at": expires_at,
        }

        def work(tx: Connection) -> CreatedKey:
            is_new = insert_new(tx, keys, [row]) == 1
            found = tx.execute(
                select(keys).where(keys.c.secret_sha256 == row["secret_sha256"])
            ).one()
            # Registering the same key again (at each start) changes nothing.
            is_ours = found.tenant_id == tenant_id and found.revoked_at is None
            if not is_new and (not is_ours or is_single_use):
                raise Conflict("this secret was registered before")
            return _as_key(found, secret=shown)

        return self._db.write(work, is_durable=True)

    def authenticate(self, secret: str) -> Principal:
        digest = _digest(secret)
        now = self._clock.now()
        query = select(keys).where(keys.c.secret_sha256 == digest)
        row = self._db.read(lambda tx: tx.execute(query).one_or_none())
        is_known = row is not None and hmac.compare_digest(row.secret_sha256, digest)
        if row is None or not is_known or not _is_usable(row, now):
            raise _refused()
        if row.is_single_use and not self._db.write(
            lambda tx: _use_up(tx, row.key_id, now), is_durable=True
        ):
            raise _refused()
        return Principal(
            tenant_id=row.tenant_id,
            subject=f"key:{row.key_id}",
            scopes=frozenset(Scope(scope) for scope in row.scopes),
            collections=None if row.collections is None else frozenset(row.collections),
            key_id=row.key_id,
        )

    def keys(self, principal: Principal) -> list[CreatedKey]:
        query = select(keys).where(keys.c.tenant_id == principal.tenant_id).order_by(keys.c.key_id)
        return [_as_key(row) for row in self._db.read(lambda tx: tx.execute(query).all())]

    def revoke_key(self, principal: Principal, key_id: str) -> None:
        now = self._clock.now()
        own = (keys.c.key_id == key_id, keys.c.tenant_id == principal.tenant_id)

        def work(tx: Connection) -> None:
            found = tx.execute(select(keys.c.key_id).where(*own)).one_or_none()
            if found is None:
                raise NotFound("no such key", key_id=key_id)
            tx.execute(update(keys).where(*own, keys.c.revoked_at.is_(None)).values(revoked_at=now))

        self._db.write(work, is_durable=True)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _is_usable(row: AnyRow, now: datetime) -> bool:
    has_expired = row.expires_at is not None and row.expires_at <= now
    return not has_expired and row.revoked_at is None and row.used_at is None


def _use_up(tx: Connection, key_id: str, now: datetime) -> bool:
    """Whether this call is the one that used the key."""
    used = tx.execute(
        update(keys).where(keys.c.key_id == key_id, keys.c.used_at.is_(None)).values(used_at=now)
    )
    return used.rowcount == 1


def _refused() -> NotAuthenticated:
    return NotAuthenticated("this key is not valid", hint="use a key that was not revoked or used")


def _as_key(row: AnyRow, *, secret: str | None = None) -> CreatedKey:
    return CreatedKey(
        key_id=row.key_id,
        name=row.name,
        scopes=frozenset(Scope(scope) for scope in row.scopes),
        collections=None if row.collections is None else frozenset(row.collections),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        secret=secret,
    )
