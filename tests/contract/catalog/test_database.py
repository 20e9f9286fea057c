"""Migrations, connections, forks, and a database that is not there."""

import multiprocessing
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from core.adapters.catalog import SqlCatalog
from core.adapters.catalog.migrating import MIGRATIONS
from core.adapters.catalog.tables import SCHEMA_REVISION, metadata
from core.domain.access import Principal
from core.errors import CatalogUnavailable, NotFound, PinciteError, SettingsError
from core.ports.catalog import Catalog
from tests.contract.catalog.driver import Driver
from tests.fakes.clock import FakeClock

PROCESS_FREE_TABLES = {"heartbeats", "leaders", "tenants"}


def test_it_is_a_catalog(catalog: SqlCatalog) -> None:
    port: Catalog = catalog  # mypy proves the signatures
    port.check()


def test_the_migrations_make_exactly_the_tables_we_use(catalog: SqlCatalog) -> None:
    differences = catalog._db.read(
        lambda tx: compare_metadata(
            MigrationContext.configure(tx, opts={"compare_server_default": True}), metadata
        )
    )
    assert differences == []


def test_the_release_names_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_REVISION]


def test_every_row_has_its_tenant() -> None:
    for table in metadata.sorted_tables:
        if table.name not in PROCESS_FREE_TABLES:
            column = table.c.tenant_id
            assert not column.nullable
            parents = {key.column.table.name for key in column.foreign_keys}
            assert "tenants" in parents, table.name


def test_migrating_again_changes_nothing(
    driver: Driver, catalog: SqlCatalog, catalog_url: str
) -> None:
    accepted = driver.ingest()
    other = SqlCatalog(catalog_url, clock=FakeClock())
    other.migrate()
    other.close()
    assert driver.shows(accepted)


def _migrate(url: str, results: "multiprocessing.Queue[str]") -> None:
    catalog = SqlCatalog(url, clock=FakeClock())
    try:
        catalog.migrate()
        catalog.check()
        results.put(catalog.access.ensure_tenant("default"))
    except PinciteError as error:
        results.put(repr(error))


def run_in_processes(target: Callable[..., None], url: str, count: int) -> set[str]:
    """What `count` new processes report."""
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=target, args=(url, results)) for _ in range(count)]
    for process in processes:
        process.start()
    found = {results.get(timeout=120) for _ in processes}
    for process in processes:
        process.join(60)
    return found


def test_processes_that_start_together_may_all_migrate(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'catalog.sqlite3'}"
    (tenant_id,) = run_in_processes(_migrate, url, 3)
    assert tenant_id.startswith("ten_")
    with sqlite3.connect(tmp_path / "new" / "catalog.sqlite3") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_threads_that_start_together_may_all_migrate(postgres_url: str) -> None:
    admin = SqlCatalog(postgres_url, clock=FakeClock())
    with admin._db.engine.connect() as connection:
        raw = connection.execution_options(isolation_level="AUTOCOMMIT")
        raw.exec_driver_sql("DROP DATABASE IF EXISTS fresh")
        raw.exec_driver_sql("CREATE DATABASE fresh")
    admin.close()
    url = postgres_url.replace("/postgres?", "/fresh?")

    def migrate(_: int) -> None:
        catalog = SqlCatalog(url, clock=FakeClock())
        catalog.migrate()
        catalog.check()
        catalog.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, range(4)))


def _use_after_fork(catalog: SqlCatalog, results: "multiprocessing.Queue[str]") -> None:
    results.put(catalog.access.ensure_tenant("from the child"))
    catalog.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_connections_of_its_own(
    catalog: SqlCatalog, principal: Principal
) -> None:
    with catalog.snapshot(principal) as snapshot:
        context = multiprocessing.get_context("fork")
        results: multiprocessing.Queue[str] = context.Queue()
        child = context.Process(target=_use_after_fork, args=(catalog, results))
        child.start()
        made = results.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0
        assert snapshot.collections() == []
    assert made in catalog.operations.tenants()


def test_a_database_without_the_schema_is_unavailable(tmp_path: Path) -> None:
    catalog = SqlCatalog(f"sqlite:///{tmp_path / 'empty.sqlite3'}", clock=FakeClock())
    with pytest.raises(CatalogUnavailable) as caught:
        catalog.check()
    assert caught.value.hint is not None
    assert "migrate" in caught.value.hint
    catalog.close()


def test_another_release_s_schema_is_unavailable(catalog: SqlCatalog) -> None:
    for revision in ("0000", "9999"):
        catalog._db.write(
            lambda tx, r=revision: tx.exec_driver_sql(  # type: ignore[misc]
                f"UPDATE alembic_version SET version_num = '{r}'"
            )
        )
        with pytest.raises(CatalogUnavailable):
            catalog.check()
    catalog._db.write(
        lambda tx: tx.exec_driver_sql(
            f"UPDATE alembic_version SET version_num = '{SCHEMA_REVISION}'"
        )
    )
    catalog.check()


@pytest.mark.parametrize(
    "url",
    ["sqlite:////nonexistent/folder/c.sqlite3", "postgresql://x@/x?host=/nonexistent"],
)
def test_a_database_that_is_away_is_unavailable(url: str) -> None:
    catalog = SqlCatalog(url, clock=FakeClock())
    for ask in (
        catalog.check,
        catalog.parts.sweep,
        lambda: catalog.access.authenticate("x"),
        lambda: list(catalog.intake.known_objects(Principal.system("ten_1", "t"), "b")),
    ):
        with pytest.raises(CatalogUnavailable):
            ask()
    with (
        pytest.raises(CatalogUnavailable),
        catalog.snapshot(Principal.system("ten_1", "test")),
    ):
        pass
    catalog.close()


def test_a_locked_database_is_unavailable(
    tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.adapters.catalog.database.BUSY_TIMEOUT_S", 0.05)
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    catalog = SqlCatalog(f"sqlite:///{path}", clock=FakeClock())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(CatalogUnavailable, match="locked"):
        catalog.access.ensure_tenant("default")
    assert catalog.operations.tenants() == []  # readers go on
    holder.execute("ROLLBACK")
    holder.close()
    assert catalog.access.ensure_tenant("default")
    catalog.close()


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///:memory:", "mysql://localhost/x", "not a url"]
)
def test_a_url_that_cannot_work_is_refused_at_once(url: str) -> None:
    with pytest.raises(SettingsError):
        SqlCatalog(url, clock=FakeClock())


def test_an_error_in_a_snapshot_is_the_caller_s(catalog: SqlCatalog, principal: Principal) -> None:
    with pytest.raises(NotFound), catalog.snapshot(principal) as snapshot:
        snapshot.document("doc_" + "0" * 32)
    with pytest.raises(ZeroDivisionError), catalog.snapshot(principal):
        raise ZeroDivisionError


def test_sqlite_is_set_up_for_many_processes(tmp_path: Path, migrated_sqlite: Path) -> None:
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    catalog = SqlCatalog(f"sqlite:///{path}", clock=FakeClock())

    def pragma(name: str) -> object:
        return catalog._db.read(lambda tx: tx.exec_driver_sql(f"PRAGMA {name}").scalar_one())

    values = {name: pragma(name) for name in (
        "journal_mode", "synchronous", "busy_timeout", "foreign_keys"
    )}  # fmt: skip
    assert values == {
        "journal_mode": "wal", "synchronous": 1, "busy_timeout": 10_000, "foreign_keys": 1,
    }  # fmt: skip
    catalog.close()
