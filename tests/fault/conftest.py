"""Servers of their own for the tests that kill them, and worker processes around them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, Servers

FAST_RECOVERY: dict[str, dict[str, object]] = {
    "worker": {"lease_s": 6.0, "republish_after_s": 3.0, "retry_base_s": 0.2},
    "sweeper": {"lease_sweep_s": 0.5, "leadership_s": 3.0},
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Valkey, SeaweedFS, the index server and a fake model server; a test that kills one starts it
    again."""
    with Servers.started(tmp_path_factory.mktemp("fault-servers")) as found:
        yield found


@pytest.fixture
def deployment(servers: Servers, tmp_path: Path) -> Iterator[Deployment]:
    """An empty catalog, bucket and index with leases of seconds; the model server is healthy."""
    servers.models.delay_s, servers.models.status = 0.0, 200
    made = Deployment.fresh(servers, tmp_path / "deployment", FAST_RECOVERY)
    yield made
    servers.models.delay_s, servers.models.status = 0.0, 200
    made.end()


@pytest.fixture
def slow_models(servers: Servers, deployment: Deployment) -> Callable[[float], None]:
    """Sets how long each batch of the model server takes: a window to hit a part in its middle."""

    def set_delay(delay_s: float) -> None:
        servers.models.delay_s = delay_s

    return set_delay
