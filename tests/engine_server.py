"""Our engine's own server as a process, with SmolLM2 on the CPU.

The weights are what `make setup` fetched into `.pincite/models`, or PINCITE_TEST_MODELS_DIR;
without them the tests that need it fail.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from core.adapters.generate_http import HttpGenerator
from core.settings import GeneratorSettings
from tests.stack import ROOT, Server, free_ports, http_status

MODELS_DIR = Path(os.environ.get("PINCITE_TEST_MODELS_DIR", ROOT / ".pincite" / "models"))


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
