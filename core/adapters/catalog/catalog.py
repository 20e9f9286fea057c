"""The catalog, put together."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from core.adapters.catalog import migrating
from core.adapters.catalog.access import SqlAccess
from core.adapters.catalog.answers import SqlAnswers
from core.adapters.catalog.conversations import SqlConversations
from core.adapters.catalog.database import Database
from core.adapters.catalog.intake import SqlIntake
from core.adapters.catalog.operations import SqlOperations
from core.adapters.catalog.parts import SqlParts
from core.adapters.catalog.snapshot import SqlSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.domain.access import Principal
    from core.ports.clock import Clock


class SqlCatalog:
    """Implements `core.ports.catalog.Catalog` on SQLite (a file) or PostgreSQL.

    Connects at first use. Safe to share between threads; after a fork each process gets connections
    of its own.

    Args:
        url: a SQLAlchemy URL; drivers are chosen here.
        pool_size: connections kept open; as many again under load.
        max_attempts: leases of one part before it is quarantined.
        republish_after_s: a sent message whose part nobody leased after this is sent again.
        retry_base_s: wait after a part's first failed attempt; doubles with each further one.

    Raises SettingsError for a URL it cannot use.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        pool_size: int = 8,
        max_attempts: int = 3,
        republish_after_s: float = 30.0,
        retry_base_s: float = 2.0,
    ) -> None:
        self._db = Database(url, pool_size=pool_size)
        self._intake = SqlIntake(self._db, clock)
        self._parts = SqlParts(
            self._db,
            clock,
            max_attempts=max_attempts,
            republish_after_s=republish_after_s,
            retry_base_s=retry_base_s,
        )
        self._answers = SqlAnswers(self._db, clock)
        self._conversations = SqlConversations(self._db, clock)
        self._access = SqlAccess(self._db, clock)
        self._operations = SqlOperations(self._db, clock)

    @property
    def intake(self) -> SqlIntake:
        return self._intake

    @property
    def parts(self) -> SqlParts:
        return self._parts

    @property
    def answers(self) -> SqlAnswers:
        return self._answers

    @property
    def conversations(self) -> SqlConversations:
        return self._conversations

    @property
    def access(self) -> SqlAccess:
        return self._access

    @property
    def operations(self) -> SqlOperations:
        return self._operations

    @contextmanager
    def snapshot(self, principal: Principal) -> Iterator[SqlSnapshot]:
        """One consistent view of this moment, for as long as the block runs."""
        with self._db.reading() as connection:
            yield SqlSnapshot(connection, principal)

    def migrate(self) -> None:
        migrating.migrate(self._db)

    def check(self) -> None:
        migrating.check(self._db)

    def close(self) -> None:
        self._db.close()
