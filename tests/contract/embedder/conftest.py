"""The packaged model in this process, the model server over it as a process, and the fake.

The model is what `make setup` fetched into `.pincite/models`, or PINCITE_TEST_MODELS_DIR; without
it these tests fail. PINCITE_TEST_MODELS_URL (and PINCITE_TEST_MODELS_KEY) name another server of
TEI's shape to hold to the same contract.
"""

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from core.adapters.embed_http import HttpEmbedder
from core.adapters.embed_local import LocalEmbedder
from core.ports.models import Embedder
from core.settings import ModelsSettings
from tests.fakes.models import FakeEmbedder
from tests.stack import ROOT, Server, free_ports, http_status

MODELS_DIR = Path(os.environ.get("PINCITE_TEST_MODELS_DIR", ROOT / ".pincite" / "models"))
OTHER_URL = os.environ.get("PINCITE_TEST_MODELS_URL", "")
KINDS = ["fake", "local", "served", *(["other"] if OTHER_URL else [])]


@pytest.fixture(scope="session")
def model_dir() -> Path:
    found = MODELS_DIR / "minilm"
    assert found.is_dir(), "the tests need the packaged model: run `make setup`"
    return found


@pytest.fixture(scope="session")
def local(model_dir: Path) -> LocalEmbedder:
    return LocalEmbedder(model_dir, device="cpu", precision="fp32")


@dataclass(frozen=True)
class ModelServer:
    process: Server
    url: str
    api_key: str

    def embedder(self) -> HttpEmbedder:
        return HttpEmbedder(ModelsSettings(url=self.url, api_key=SecretStr(self.api_key)))


def model_server(folder: Path, model_dir: Path) -> ModelServer:
    """`pincite serve models` by its module, on the CPU in fp32. Not started."""
    (port,) = free_ports(1)
    api_key = secrets.token_hex(16)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "pincite.servers.models"]
    command += ["--model-dir", str(model_dir), "--host", "127.0.0.1", "--port", str(port)]
    environ = {
        "PINCITE_MODELS__API_KEY": api_key,
        "PINCITE_MODELS__DEVICE": "cpu",
        "PINCITE_MODELS__PRECISION": "fp32",
        "PINCITE_MODELS__THREADS": "1",
    }
    process = Server(
        "models", command, folder, lambda: http_status(f"{url}/readyz") == 200, environ
    )
    return ModelServer(process, url, api_key)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Iterator[ModelServer]:
    server = model_server(tmp_path_factory.mktemp("models"), model_dir)
    server.process.start()
    yield server
    server.process.stop()


@pytest.fixture(params=KINDS)
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "fake":
        yield FakeEmbedder()
    elif request.param == "local":
        yield request.getfixturevalue("local")
    elif request.param == "served":
        made = request.getfixturevalue("served").embedder()
        yield made
        made.close()
    else:
        key = SecretStr(os.environ.get("PINCITE_TEST_MODELS_KEY", ""))
        made = HttpEmbedder(ModelsSettings(url=OTHER_URL, api_key=key))
        yield made
        made.close()
