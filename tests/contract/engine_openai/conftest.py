"""The official `openai` client, unmodified, against the engine's server around a fake engine."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.engine_serving import INTERNAL_KEY, ServedEngine, serving_engine


@pytest.fixture(scope="module")
def served() -> Iterator[ServedEngine]:
    with serving_engine() as running:
        yield running


@pytest.fixture
def client(served: ServedEngine) -> Iterator[OpenAI]:
    with OpenAI(
        base_url=served.base_url,
        api_key=INTERNAL_KEY,
        max_retries=0,
        timeout=30,
        http_client=httpx2.Client(trust_env=False),
    ) as made:
        yield made


@pytest.fixture
async def async_client(served: ServedEngine) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=served.base_url,
        api_key=INTERNAL_KEY,
        max_retries=0,
        timeout=30,
        http_client=httpx2.AsyncClient(trust_env=False),
    ) as made:
        yield made
