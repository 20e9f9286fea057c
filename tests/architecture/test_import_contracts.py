"""The contracts of `.importlinter`: kept by the code, and broken by code that breaks them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import COMPANIONS, PACKAGES, ROOT, committed_files

CORE_MODULES = [
    "errors",
    "domain",
    "ids",
    "object_events",
    "settings",
    "logging",
    "metrics",
    "ports",
    "lexical",
    "retry",
    "artifacts",
    "factory",
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )


def write_module(folder: Path, module: str, code: str = "") -> None:
    """A module and, where they are missing, the packages around it."""
    *packages, name = module.split(".")
    here = folder
    for package in packages:
        here /= package
        here.mkdir(exist_ok=True)
        (here / "__init__.py").touch()
    target = here / name / "__init__.py" if (here / name).is_dir() else here / f"{name}.py"
    with target.open("a", encoding="utf-8") as file:
        file.write(code + "\n")


@pytest.fixture
def empty_house(tmp_path: Path) -> Path:
    """The packages with nothing in them, under the real contracts."""
    shutil.copy(ROOT / ".importlinter", tmp_path / ".importlinter")
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    for name in CORE_MODULES:
        write_module(tmp_path, f"core.{name}")
    write_module(tmp_path, "core.adapters.queue_celery")
    return tmp_path


def test_the_code_keeps_the_contracts() -> None:
    finished = lint_imports(ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_what_the_design_allows_keeps_the_contracts(empty_house: Path) -> None:
    write_module(empty_house, "core.adapters.queue_celery", "import celery")
    write_module(empty_house, "core.adapters.catalog_sql.tables", "import sqlalchemy")
    write_module(empty_house, "core.adapters.embed_local", "import sentence_transformers, torch")
    write_module(empty_house, "core.factory", "import core.adapters.catalog_sql.tables")
    write_module(empty_house, "ingest.parsing.pdf", "import pymupdf, core.ports")
    write_module(empty_house, "query.app", "import fastapi, core.factory")
    write_module(empty_house, "workers.app", "import celery, core.factory, ingest.parsing.pdf")
    write_module(empty_house, "pincite.cli", "import workers.app, query.app")
    write_module(
        empty_house, "pincite.servers.index.app", "import qdrant_edge, qdrant_client, fastapi"
    )
    write_module(
        empty_house, "pincite.servers.models.app", "import core.adapters.embed_local, fastapi"
    )
    finished = lint_imports(empty_house)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("module", "code", "contract"),
    [
        ("core.retry", "import ingest", "Packages are layered"),
        ("ingest.pipeline", "import query", "Packages are layered"),
        ("workers.tasks", "import pincite", "Packages are layered"),
        ("workers.tasks", "import query", "Workers know neither"),
        ("workers.tasks", "import engine", "Workers know neither"),
        ("engine.step", "import core.errors", "The engine imports nothing"),
        ("core.errors", "import core.ids", "Core is layered"),
        ("core.domain", "import core.settings", "Core is layered"),
        ("core.ports", "import core.factory", "Core is layered"),
        ("core.cache", "", "Core is layered"),
        ("ingest.cache", "", "Ingest is layered"),
        ("ingest.layout", "import ingest.pipeline", "Ingest is layered"),
        ("query.cache", "", "Query is layered"),
        ("query.retrieval", "import query.api", "Query is layered"),
        ("workers.cache", "", "Workers are layered"),
        ("workers.outbox", "import workers.sweeper", "Workers are layered"),
        ("pincite.cache", "", "The product is layered"),
        ("pincite.servers", "import pincite.cli", "The product is layered"),
        ("query.fusion", "import query.scan\n", "No import cycles"),
        ("query.app", "import core.adapters.queue_celery", "Adapters are reached"),
        ("pincite.servers.models", "import core.adapters.queue_celery", "Adapters are reached"),
        ("query.app", "import sqlalchemy", "Storage and index SDKs"),
        ("ingest.indexing", "from qdrant_client import models", "Storage and index SDKs"),
        ("core.lexical", "import boto3", "Storage and index SDKs"),
        ("query.app", "import sentence_transformers", "torch"),
        ("core.adapters.queue_celery", "import torch", "torch"),
        ("query.app", "import celery", "Celery lives in"),
        ("core.factory", "import kombu", "Celery lives in"),
        ("workers.app", "import fastapi", "FastAPI lives in"),
        ("pincite.cli", "import fastapi", "FastAPI lives in"),
        ("pincite.servers.models", "import qdrant_edge", "Qdrant's embedded core"),
        ("core.adapters.queue_celery", "import qdrant_edge", "Qdrant's embedded core"),
        ("ingest.layout", "import pymupdf", "PyMuPDF is imported"),
        ("query.app", "import pymupdf", "PyMuPDF is imported"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    empty_house: Path, module: str, code: str, contract: str
) -> None:
    if contract == "No import cycles":
        write_module(empty_house, "query.scan", "import query.fusion")
    write_module(empty_house, module, code)
    for imported in re.findall(
        r"^import ((?:ingest|query|workers|pincite)\.\w+)$", code, re.MULTILINE
    ):
        write_module(empty_house, imported)
    finished = lint_imports(empty_house)
    broken = [line for line in finished.stdout.splitlines() if line.endswith("BROKEN")]
    assert finished.returncode != 0
    assert any(contract in line for line in broken), finished.stdout + finished.stderr


def test_every_top_level_package_has_a_place() -> None:
    """import-linter cannot make the outermost list exhaustive, so that is done here."""
    packages = {
        path.parts[0]
        for path in committed_files()
        if path.name == "__init__.py" and len(path.parts) == 2
    }
    assert packages - set(COMPANIONS) == set(PACKAGES)
