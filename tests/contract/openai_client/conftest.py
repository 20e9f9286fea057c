"""The whole application behind a real socket, and OpenAI's official client, unmodified."""

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.api_fixtures import log_lines, make_world, migrated_catalog, world
from tests.api_world import World
from tests.serving import Served, serving

__all__ = ["log_lines", "make_world", "migrated_catalog", "world"]


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    with serving(world.services) as found:
        yield found


@pytest.fixture
def openai(world: World, served: Served) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{served.url}/v1", api_key=world.key(), max_retries=0) as client:
        yield client
