"""Fixtures around `tests.api_world`, for the conftest modules that want them."""

import shutil
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from core.adapters.catalog import SqlCatalog
from tests.api_world import World, build_world
from tests.fakes.clock import FakeClock

LogLines = list[MutableMapping[str, Any]]


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
