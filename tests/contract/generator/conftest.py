"""The fake, the adapter over a scripted server, and over our engine's own server as a process.

PINCITE_TEST_GENERATOR_URL (and _KEY) name another OpenAI-compatible server to hold to the same
contract.
"""

import os
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from core.adapters.generate_http import HttpGenerator
from core.ports.generator import Generator
from core.settings import GeneratorSettings
from tests.contract.generator import openai_shape
from tests.engine_server import engine
from tests.fakes.generator import FakeGenerator
from tests.scripted_server import scripted

__all__ = ["engine"]

OTHER_URL = os.environ.get("PINCITE_TEST_GENERATOR_URL", "")
KINDS = [
    "fake",
    "scripted",
    pytest.param("engine", marks=pytest.mark.slow),
    *(["other"] if OTHER_URL else []),
]


@pytest.fixture(params=KINDS)
def generator(request: pytest.FixtureRequest) -> Iterator[Generator]:
    if request.param == "fake":
        yield FakeGenerator(lambda asked: asked.messages[-1].content.rpartition("\n")[2])
    elif request.param == "scripted":
        with scripted(openai_shape.respond) as server:
            made = HttpGenerator(GeneratorSettings(url=f"{server.url}/v1"))
            yield made
            made.close()
    elif request.param == "engine":
        made = request.getfixturevalue("engine").generator()
        yield made
        made.close()
    else:
        key = SecretStr(os.environ.get("PINCITE_TEST_GENERATOR_KEY", ""))
        made = HttpGenerator(GeneratorSettings(url=OTHER_URL, api_key=key))
        yield made
        made.close()
