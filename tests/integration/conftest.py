"""Real servers and real worker processes around one data directory (see `tests.deployment`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, Servers


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Valkey, SeaweedFS, the index server and a fake model server, started once."""
    with Servers.started(tmp_path_factory.mktemp("servers")) as found:
        yield found


@pytest.fixture
def deploy(servers: Servers, tmp_path: Path) -> Iterator[Callable[..., Deployment]]:
    """Makes a deployment with an empty catalog, bucket and index; its processes end with the
    test."""
    made: list[Deployment] = []

    def make(**sections: dict[str, object]) -> Deployment:
        deployment = Deployment.fresh(servers, tmp_path / f"deployment{len(made)}", sections)
        made.append(deployment)
        return deployment

    yield make
    for deployment in made:
        deployment.end()
