"""Bringing a database to this release's schema, and checking that it has it."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from core.adapters.catalog.tables import SCHEMA_REVISION
from core.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from core.adapters.catalog.database import Database

_ADVISORY_LOCK = 0x70696E63697465  # any number that nobody else uses: "pincite"
MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Run the missing migrations in one transaction; a second process waits and finds them done.

    Raises CatalogUnavailable.
    """
    with _one_process(database):
        database.write(_upgrade, is_durable=True)


def check(database: Database) -> None:
    """Raises CatalogUnavailable unless the database answers and has this release's schema."""
    found = database.read(
        lambda tx: tx.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    )
    if list(found) != [SCHEMA_REVISION]:
        raise CatalogUnavailable(
            f"the catalog has schema {', '.join(found) or 'none'}, this release needs "
            f"{SCHEMA_REVISION}",
            hint="run `pincite admin migrate`",
        )


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _one_process(database: Database) -> Iterator[None]:
    """For SQLite: a file lock, because switching to WAL does not wait for other connections."""
    if not database.is_sqlite:
        yield
        return
    path = Path(str(database.url.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(path.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with database.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode")
                connection.rollback()
                raw = connection.connection.dbapi_connection
                assert raw is not None
                raw.cursor().execute("PRAGMA journal_mode=WAL")
            yield
    except OSError as error:
        raise CatalogUnavailable(f"cannot create {path}: {error.strerror}") from error
    except SQLAlchemyError as error:
        raise CatalogUnavailable(f"cannot open {path}") from error
