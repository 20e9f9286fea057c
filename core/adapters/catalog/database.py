"""Connections and transactions, the same for SQLite and PostgreSQL.

SQLite: WAL; writers start with BEGIN IMMEDIATE, since a deferred transaction that reads first and
then writes claims the same row twice; readers use a deferred BEGIN whose read point is fixed by a
first read. PostgreSQL: writers use READ COMMITTED and lock the rows they decide on, readers use
REPEATABLE READ, read only.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import Row, create_engine, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from core.adapters.catalog import tables
from core.errors import CatalogUnavailable, InternalError, PinciteError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import URL, Connection, Engine, Table

T = TypeVar("T")
AnyRow: TypeAlias = Row[*tuple[Any, ...]]

BUSY_TIMEOUT_S = 10.0
POOL_TIMEOUT_S = 10.0
_WRITES = "pincite_writes"
_DURABLE = "pincite_durable"
_MAX_TRANSACTION_TRIES = 5
# serialization_failure, deadlock_detected: PostgreSQL asks for the transaction to be run again
_RETRIED_STATES = frozenset({"40001", "40P01"})


class Database:
    """An engine per process, made at first use, so that it survives a fork.

    Raises SettingsError for a URL that is neither SQLite (a file) nor PostgreSQL.
    """

    def __init__(self, url: str, *, pool_size: int) -> None:
        self.url = _checked_url(url)
        self._pool_size = pool_size
        self._engine: Engine | None = None
        self._inherited: list[Engine | None] = []
        self._engine_pid = 0
        self._lock = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None or self._engine_pid != os.getpid():
                # After a fork the parent's connections are not ours to use, nor to close: they are
                # kept out of the garbage collector's way.
                self._inherited.append(self._engine)
                self._engine = self._create_engine()
                self._engine_pid = os.getpid()
            return self._engine

    def close(self) -> None:
        with self._lock:
            if self._engine is not None and self._engine_pid == os.getpid():
                self._engine.dispose()
            self._engine = None

    def write(self, work: Callable[[Connection], T], *, is_durable: bool = False) -> T:
        """Run `work` in one writing transaction, again when the database asks for it.

        `is_durable` waits for the disk also where a power cut may lose the last commits (SQLite).
        Raises CatalogUnavailable, InternalError, and whatever `work` raises (rolled back).
        """
        options = {_WRITES: True, _DURABLE: is_durable}
        for tried in range(1, _MAX_TRANSACTION_TRIES + 1):
            try:
                with self.engine.connect() as opened:
                    connection = opened.execution_options(**options)
                    with connection.begin():
                        return work(connection)
            except SQLAlchemyError as error:
                if tried < _MAX_TRANSACTION_TRIES and _may_succeed_again(error):
                    continue
                raise _translated(error) from error
        raise AssertionError("unreachable")

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one consistent read transaction. Raises CatalogUnavailable."""
        with self.reading() as connection:
            return work(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read transaction whose read point is now. Raises CatalogUnavailable."""
        try:
            options: dict[str, Any] = {}
            if not self.is_sqlite:
                options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            with self.engine.connect() as opened:
                connection = opened.execution_options(**options)
                with connection.begin():
                    connection.execute(select(tables.tenants.c.tenant_id).limit(1)).all()
                    yield connection
        except SQLAlchemyError as error:
            raise _translated(error) from error

    def _create_engine(self) -> Engine:
        size = {
            "pool_size": self._pool_size,
            "max_overflow": self._pool_size,
            "pool_timeout": POOL_TIMEOUT_S,
        }
        if self.is_sqlite:
            engine = create_engine(self.url, connect_args={"timeout": BUSY_TIMEOUT_S}, **size)
            event.listen(engine, "connect", _configure_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        return create_engine(
            self.url, connect_args={"connect_timeout": 5}, pool_pre_ping=True, **size
        )


def insert_new(tx: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows that violate no unique constraint; returns how many were."""
    if not rows:
        return 0
    make = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    values = [dict(row) for row in rows]
    statement = make(table).values(values).on_conflict_do_nothing()
    # Without the option the number of inserted rows is not kept.
    return tx.execute(statement.execution_options(preserve_rowcount=True)).rowcount


def clean(text: str, max_chars: int = 2_000) -> str:
    """What PostgreSQL can store of text from files and exceptions: no NUL, no lone surrogate."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")[:max_chars]


def _checked_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise SettingsError("catalog.url is not a database URL") from error
    backend = parsed.get_backend_name()
    if backend in {"postgresql", "postgres"}:
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise SettingsError(
            f"catalog.url: '{backend}' is not supported", hint="use sqlite:///… or postgresql://…"
        )
    if parsed.database in {None, "", ":memory:"}:
        raise SettingsError("catalog.url: SQLite needs a file, since processes share the catalog")
    return parsed


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    for pragma in ("foreign_keys=ON", "synchronous=NORMAL", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get(_WRITES):
        connection.exec_driver_sql("BEGIN")
        return
    level = "FULL" if options.get(_DURABLE) else "NORMAL"
    connection.exec_driver_sql(f"PRAGMA synchronous={level}")  # not possible inside a transaction
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _may_succeed_again(error: SQLAlchemyError) -> bool:
    return (
        isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _RETRIED_STATES
    )


def _translated(error: SQLAlchemyError) -> PinciteError:
    is_missing_schema = isinstance(error, ProgrammingError) or "no such table" in str(error)
    if is_missing_schema:
        return CatalogUnavailable(
            "the catalog does not have this release's schema", hint="run `pincite admin migrate`"
        )
    is_away = isinstance(error, OperationalError | InterfaceError | PoolTimeout) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    )
    if is_away:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()
        return CatalogUnavailable(
            f"the catalog does not answer: {reason[0] if reason else type(error).__name__}",
            hint="check that the database runs, has space, and is not locked",
        )
    return InternalError(f"the catalog refused a statement: {type(error).__name__}")
