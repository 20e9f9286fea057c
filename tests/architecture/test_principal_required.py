"""Nothing that reads chunks, answers or bytes can be called without a Principal: mypy proves it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from mypy import api

from tests.architecture.repository import ROOT

HEADER = """
from core.domain.access import Principal
from core.domain.search import SearchFilter
from core.ports.catalog import Catalog
from core.ports.object_store import ObjectStore
from core.ports.vector_index import VectorIndex

def ask(
    catalog: Catalog, store: ObjectStore, index: VectorIndex, who: Principal, name: str
) -> None:
"""
WITHOUT = {
    "snapshot": "catalog.snapshot()",
    "load": "catalog.answers.load(answer_id=name)",
    "events": "catalog.answers.events(answer_id=name, after_seq=0)",
    "store": "catalog.answers.store(answer={}, events=[], document_ids=[])",
    "delete": "catalog.intake.delete(document_id=name, tombstone=False)",
    "retry": "catalog.parts.retry(job_id=name)",
    "keys": "catalog.access.keys()",
    "open": "store.open(bucket=name, key=name)",
    "read": "store.read(bucket=name, key=name)",
    "list": "store.list(bucket=name)",
    "search": "index.search(dense=None, lexical=None, limit=1, where=SearchFilter())",
    "count": "index.count(document_id=name, generation_id=name)",
}
WITH = (
    "catalog.snapshot(who)",
    "catalog.answers.load(who, name)",
    "store.open(who, name, name)",
    "index.search(who, dense=None, lexical=None, limit=1, where=SearchFilter())",
)
NONE_INSTEAD = ("catalog.snapshot(None)", "catalog.answers.load(None, name)")


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy --strict says about each line, by the line's text ('' when it accepts it)."""
    folder = tmp_path_factory.mktemp("principal")
    lines = [*WITHOUT.values(), *WITH, *NONE_INSTEAD]
    path = folder / "calls.py"
    path.write_text(HEADER.lstrip() + "".join(f"    {line}\n" for line in lines))
    found = _check(path, folder)
    first = HEADER.lstrip().count("\n") + 1
    assert set(found) <= set(range(first, first + len(lines))), found
    return {line: found.get(first + place, "") for place, line in enumerate(lines)}


def _check(path: Path, folder: Path) -> dict[int, str]:
    """Errors by line number."""
    output, problems, _ = api.run(
        [
            "--strict",
            "--config-file=",
            f"--python-version={sys.version_info.major}.{sys.version_info.minor}",
            "--explicit-package-bases",
            "--namespace-packages",
            f"--cache-dir={folder / 'cache'}",
            "--no-error-summary",
            "--hide-error-context",
            str(path),
        ]
    )
    assert problems == ""
    found = re.findall(r"^\S*calls\.py:(\d+): error: (.*)$", output, re.MULTILINE)
    assert len(found) == len([line for line in output.splitlines() if ": error:" in line]), output
    return {int(number): message for number, message in found}


@pytest.fixture(autouse=True, scope="module")
def _from_the_root() -> None:
    """mypy finds our packages below the working directory."""
    assert Path.cwd() == ROOT, "run the tests from the top of the repository"


@pytest.mark.parametrize("call", WITHOUT.values(), ids=list(WITHOUT))
def test_a_call_without_a_principal_does_not_type_check(
    complaints: dict[str, str], call: str
) -> None:
    assert 'Missing positional argument "principal"' in complaints[call], complaints[call]


@pytest.mark.parametrize("call", NONE_INSTEAD)
def test_none_is_not_a_principal(complaints: dict[str, str], call: str) -> None:
    assert 'expected "Principal"' in complaints[call]


@pytest.mark.parametrize("call", WITH)
def test_the_same_call_with_one_does(complaints: dict[str, str], call: str) -> None:
    assert complaints[call] == ""
