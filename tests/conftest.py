"""What holds for every test: its own home and data directory, and no settings of this machine.

Session-scoped fixtures (servers) are set up before the per-test isolation and see the environment
that pytest was started with; `PINCITE_TEST_*` switches are read there.
"""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Examples must not depend on the day: derandomised in CI, and no deadline anywhere, since a busy
# machine is not a failure.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "developer", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


@pytest.fixture(autouse=True)
def isolated_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty home for this test, with the data directory in it and every PINCITE_* name gone."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.upper().startswith(("PINCITE_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PINCITE_DATA_DIR", str(home / "data"))
    return home


@pytest.fixture
def data_dir(isolated_home: Path) -> Path:
    """The data directory of this test; it does not exist yet."""
    return isolated_home / "data"


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """Gives, at each call, a loopback TCP port that was free a moment ago and was not given before.

    The number is not reserved: another process may take it before the server under test does.
    Where a server can bind port 0 itself, prefer that.
    """
    given: set[int] = set()

    def find() -> int:
        while True:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind(("127.0.0.1", 0))
                port = int(probe.getsockname()[1])
            if port not in given:
                given.add(port)
                return port

    return find


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what needs a GPU where there is none."""
    if Path("/dev/nvidiactl").exists():
        return
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        config.hook.pytest_deselected(items=on_gpu)
        items[:] = [item for item in items if item not in on_gpu]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked needs_command(name, package) name what is missing; in CI that is a failure."""
    for marker in item.iter_markers("needs_command"):
        name, package = marker.args
        if shutil.which(name) is None:
            reason = f"{name} is not on PATH (Debian: apt-get install {package})"
            if os.environ.get("CI"):
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
