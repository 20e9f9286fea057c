"""Everything in this folder needs an NVIDIA GPU; tests/conftest.py deselects it where there is
none."""

import pytest

from tests.unit.engine.attention.conftest import pytest_generate_tests

__all__ = ["pytest_generate_tests"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Were a marker forgotten, a machine without a GPU would fail, not pass by silence."""
    for item in items:
        if "tests/gpu/" in item.path.as_posix():
            assert item.get_closest_marker("gpu"), f"{item.nodeid} lacks the gpu marker"
