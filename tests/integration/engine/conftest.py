"""The real SmolLM2 weights, loaded once. `make setup` fetches them into `.pincite/models`, or
PINCITE_TEST_MODELS_DIR says where they are; without them these tests fail."""

import os
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.loading import EngineParts, load_engine_parts

ROOT = Path(__file__).resolve().parents[3]
MODELS_DIR = Path(os.environ.get("PINCITE_TEST_MODELS_DIR", ROOT / ".pincite" / "models"))


@pytest.fixture(scope="session")
def smollm2() -> Path:
    found = MODELS_DIR / "smollm2"
    assert found.is_dir(), f"no weights in {found}: run `make setup`"
    return found


@pytest.fixture(scope="session")
def parts(smollm2: Path) -> EngineParts:
    """On the CPU, in the dtype that it runs best; engines of smaller budgets, batches and pools can
    be made of it."""
    return load_engine_parts(EngineConfig(smollm2, device="cpu", threads=1, num_blocks=400))
