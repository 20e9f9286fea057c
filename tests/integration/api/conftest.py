"""The API behind a real socket; what is behind the API are the fakes of `tests.api_world`."""

from collections.abc import Iterator

import pytest

from tests.api_fixtures import log_lines, make_world, migrated_catalog, world
from tests.api_world import World
from tests.serving import Served, serving

__all__ = ["log_lines", "make_world", "migrated_catalog", "world"]


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    with serving(world.services) as found:
        yield found
