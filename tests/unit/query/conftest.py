"""A world of two tenants behind the whole application, without a network."""

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from query.app import create_app
from tests.api_fixtures import log_lines, make_world, migrated_catalog, world
from tests.api_world import World

__all__ = ["log_lines", "make_world", "migrated_catalog", "world"]

ORIGIN = "http://127.0.0.1"


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
