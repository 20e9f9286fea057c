"""The README's first command, with no network but loopback."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded_stack import models_source
from tests.stack import ROOT, clean_environ

NAMESPACE = f"pincite-{os.getpid()}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(480),
    pytest.mark.needs_command("ip", "iproute2"),
]


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with only loopback; needs root, as CI has."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("making a network namespace needs root", pytrace=False)
        pytest.skip("making a network namespace needs root")
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        subprocess.run(["ip", "-n", NAMESPACE, "link", "set", "lo", "up"], check=True)
        yield NAMESPACE
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)


def test_demo_passes_with_only_loopback(namespace: str, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    (data_dir / "models").symlink_to(models_source())
    inside = ["ip", "netns", "exec", namespace]
    outside = subprocess.run(
        [*inside, "ip", "-brief", "address"], capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in outside.stdout.splitlines()] == ["lo"]
    demo = subprocess.run(
        [*inside, sys.executable, "-m", "pincite.cli", "demo"],
        env=clean_environ() | {"PINCITE_DATA_DIR": str(data_dir), "CI": "true"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    assert "verdict:                      passed" in demo.stdout
    right = re.search(r"right page, verbatim quote: +(\d+) of 24", demo.stdout)
    abstained = re.search(r"not in documents, said so: +(\d+) of 12", demo.stdout)
    assert right is not None
    assert abstained is not None
    assert int(right[1]) >= 21
    assert int(abstained[1]) >= 9
