"""The fake, the adapter over a scripted server, and over our engine's own server as a process.

The weights are what `make setup` fetched into `.pincite/models`, or PINCITE_TEST_MODELS_DIR;
without them the tests of our engine fail. PINCITE_TEST_GENERATOR_URL (and _KEY) name another
OpenAI-compatible server to hold to the same contract.
"""

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from core.adapters.generate_http import HttpGenerator
from core.ports.generator import Generator
from core.settings import GeneratorSettings
from tests.contract.generator import openai_shape
from tests.fakes.generator import FakeGenerator
from tests.scripted_server import scripted
from tests.stack import ROOT, Server, free_ports, http_status

MODELS_DIR = Path(os.environ.get("PINCITE_TEST_MODELS_DIR", ROOT / ".pincite" / "models"))
OTHER_URL = os.environ.get("PINCITE_TEST_GENERATOR_URL", "")
KINDS = [
    "fake",
    "scripted",
    pytest.param("engine", marks=pytest.mark.slow),
    *(["other"] if OTHER_URL else []),
]


@dataclass(frozen=True)
class EngineServer:
    process: Server
    url: str
    api_key: str

    def generator(self) -> HttpGenerator:
        return HttpGenerator(GeneratorSettings(url=self.url, api_key=SecretStr(self.api_key)))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineServer]:
    """`python -m engine.server` with SmolLM2 on the CPU."""
    model = MODELS_DIR / "smollm2"
    assert model.is_dir(), "the tests need the packaged model: run `make setup`"
    (port,) = free_ports(1)
    key, url = secrets.token_hex(16), f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "engine.server", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--threads", "1"]
    process = Server(
        "engine",
        command,
        tmp_path_factory.mktemp("engine"),
        lambda: http_status(f"{url}/readyz") == 200,
        {"PINCITE_ENGINE__API_KEY": key, "PYTHONPATH": str(ROOT)},
    )
    process.start()
    yield EngineServer(process, url, key)
    process.stop()


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
