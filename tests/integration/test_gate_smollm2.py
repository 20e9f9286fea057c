"""The gate on a real small model through the engine's own server: it has to fail it."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from query.gate import gate_reader, read_gate
from query.gate.results import shipped_results
from tests.engine_server import EngineServer, engine
from tests.stack import ROOT

__all__ = ["engine"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]


def test_smollm2_fails_the_gate_and_auto_will_know(engine: EngineServer, data_dir: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pincite.cli", "eval", "gate", "--json"],
        env=os.environ
        | {
            "PINCITE_GENERATOR__URL": engine.url,
            "PINCITE_GENERATOR__API_KEY": engine.api_key,
            "PINCITE_DATA_DIR": str(data_dir),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert ran.returncode == 1, ran.stderr
    printed = json.loads(ran.stdout)
    assert printed["has_passed"] is False
    assert {"answered_right", "refused"} & set(printed["failing"])
    assert printed["figures"]["structural_errors"] == 0
    assert 10 <= printed["num_asked"] <= 100
    # It does answer: the gate fails it for what it says, not for saying nothing.
    assert printed["figures"]["answered_right"] > 0
    assert sum(bool(outcome["text"].strip()) for outcome in printed["outcomes"]) > 5

    with closing(engine.generator()) as generator:
        fingerprint = generator.info().fingerprint
    assert printed["fingerprint"] == fingerprint
    assert fingerprint in shipped_results()
    stored = read_gate(data_dir, fingerprint)
    assert stored is not None
    assert list(stored.failing) == printed["failing"]
    assert gate_reader(data_dir)(fingerprint) is False
