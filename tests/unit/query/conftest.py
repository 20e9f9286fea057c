"""A world of two tenants behind the whole application, without a network."""

import shutil
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from core.adapters.catalog import SqlCatalog
from query.app import create_app
from tests.api_world import World, build_world
from tests.fakes.clock import FakeClock

LogLines = list[MutableMapping[str, Any]]
ORIGIN = "http://127.0.0.1"


@pytest.fixture(autouse=True)
def log_lines() -> Iterator[LogLines]:
    """What the code under test logs; nothing is printed."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture(scope="session")
def migrated_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty catalog file; tests copy it."""
    path = tmp_path_factory.mktemp("catalog") / "template.sqlite3"
    catalog = SqlCatalog(f"sqlite:///{path}", clock=FakeClock())
    catalog.migrate()
    catalog.close()
    return path


@pytest.fixture
def make_world(migrated_catalog: Path, tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Builds a world; keyword arguments are sections of the settings."""
    made: list[World] = []

    def make(**sections: Mapping[str, Any]) -> World:
        path = tmp_path / f"catalog-{len(made)}.sqlite3"
        shutil.copy(migrated_catalog, path)
        made.append(build_world(path, sections))
        return made[-1]

    yield make
    for world in made:
        world.catalog.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def open_client(world: World) -> Iterator[Callable[[str | None], TestClient]]:
    """Clients of one running application; the argument is the key they send, None for none."""
    app = create_app(world.services)
    with TestClient(app, base_url=ORIGIN, client=("127.0.0.1", 50_000)) as running:

        def client(secret: str | None) -> TestClient:
            headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
            made = TestClient(
                app,
                base_url=ORIGIN,
                headers=headers,
                client=("127.0.0.1", 50_001),
                follow_redirects=False,
            )
            made.portal = running.portal
            return made

        yield client


@pytest.fixture
def client(world: World, open_client: Callable[[str | None], TestClient]) -> TestClient:
    """The embedded admin: all scopes of the tenant `default`."""
    return open_client(world.key())


@pytest.fixture
def stranger(world: World, open_client: Callable[[str | None], TestClient]) -> TestClient:
    """All scopes of another tenant."""
    return open_client(world.key(tenant="other"))


@pytest.fixture
def nobody(open_client: Callable[[str | None], TestClient]) -> TestClient:
    return open_client(None)
