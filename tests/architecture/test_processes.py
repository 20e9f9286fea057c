"""Which heavy libraries each process may load (docs/architecture.md, "Processes").

Torch belongs to the model server and the engine alone: it costs 250 MB and seconds of start-up.
PDF parsing belongs to killable children: a parser that takes the process down must not take the API
or a worker with it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGES, ROOT, module_name, python_files

WEIGHTS = ("torch", "transformers", "sentence_transformers")
PARSERS = ("pymupdf", "pymupdf4llm", "onnxruntime")
# Megabytes each, in the supervisor and in everything that `pincite serve` starts.
NEEDED_LATER = ("boto3", "cryptography", "numpy", "qdrant_client", "grpc", "sqlalchemy", "alembic")

# What each process imports first. A process that is added gets a line here.
ENTRY_MODULES = {
    "engine.server.process": ("transformers", "sentence_transformers", *PARSERS),
    "core.factory": WEIGHTS + PARSERS,
    "pincite.cli": WEIGHTS + PARSERS + NEEDED_LATER,
    "pincite.servers.api": WEIGHTS + PARSERS,
    "query.app": WEIGHTS + PARSERS,
    "workers.app": WEIGHTS + PARSERS,
    "workers.lifecycle": WEIGHTS + PARSERS,
    "workers.sweeper": WEIGHTS + PARSERS,
}
# The only modules that may load weights; everything else of ours is imported by the sweep below.
OWNERS_OF_WEIGHTS = (
    "core.adapters.embed_local",
    "core.adapters.rerank_local",
    "pincite.servers.models",
    "engine",
)

PROBE = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(set(json.loads(sys.argv[2])) & set(sys.modules))))
"""


def loaded(modules: list[str], watched: tuple[str, ...], search_path: Path = ROOT) -> list[str]:
    """Which of `watched` a fresh interpreter has loaded after importing `modules`."""
    import json

    finished = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(modules), json.dumps(watched)],
        cwd=search_path,
        env={**os.environ, "PYTHONPATH": str(search_path)},
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout)
    return [str(name) for name in found]


@pytest.mark.parametrize("entry", ENTRY_MODULES)
def test_the_process_loads_no_weights_and_no_parser(entry: str) -> None:
    assert not loaded([entry], ENTRY_MODULES[entry])


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_module_loads_torch(package: str) -> None:
    modules = [
        name
        for path in python_files(package)
        if path.stem not in {"__main__", "env"} and "versions" not in path.parts
        if not (name := module_name(path)).startswith(OWNERS_OF_WEIGHTS)
    ]
    assert not loaded(modules, WEIGHTS)


def test_the_probe_sees_an_indirect_import(tmp_path: Path) -> None:
    (tmp_path / "torch.py").touch()
    (tmp_path / "between.py").write_text("import torch\n", encoding="utf-8")
    (tmp_path / "entry.py").write_text("import between\n", encoding="utf-8")
    assert loaded(["entry"], WEIGHTS, search_path=tmp_path) == ["torch"]
    assert not loaded(["json"], WEIGHTS, search_path=tmp_path)
