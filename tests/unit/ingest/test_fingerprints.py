"""A generation's fingerprint: from settings alone, short, and different whenever a file's points
are."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.domain.pipeline import PipelineFingerprint
from core.settings import Settings
from ingest.fingerprints import pipeline_fingerprint
from tests.stack import ROOT


def fingerprint(folder: Path, **sections: Any) -> str:
    return str(pipeline_fingerprint(Settings.model_validate({"data_dir": folder, **sections})))


def test_it_is_stable_and_reads_back(tmp_path: Path) -> None:
    found = fingerprint(tmp_path)
    assert found == fingerprint(tmp_path)
    assert str(PipelineFingerprint.parse(found)) == found
    assert len(found) <= 80


@pytest.mark.parametrize(
    "sections",
    [
        {"parser": {"max_page_chars": 1000}},
        {"chunker": {"target_fraction": 0.5}},
        {"models": {"embedder": "another"}},
    ],
)
def test_what_changes_points_changes_it(tmp_path: Path, sections: dict[str, Any]) -> None:
    assert fingerprint(tmp_path, **sections) != fingerprint(tmp_path)


@pytest.mark.parametrize(
    "sections",
    [{"parser": {"page_timeout_s": 3.0}}, {"models": {"threads": 3}}, {"worker": {"lease_s": 9.0}}],
)
def test_what_changes_no_points_does_not(tmp_path: Path, sections: dict[str, Any]) -> None:
    assert fingerprint(tmp_path, **sections) == fingerprint(tmp_path)


@pytest.mark.parametrize("text", ["", "a", "a.b.c.d", "a.b.c.d.e.f", "a..c.d.e"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fingerprint"):
        PipelineFingerprint.parse(text)


def test_accepting_needs_neither_the_parser_library_nor_the_tokenizer() -> None:
    """The API imports it: no PDF library, no model library in that process."""
    code = (
        "import ingest.intake, sys;"
        "print([name for name in ('pymupdf', 'tokenizers', 'torch', 'onnxruntime')"
        " if name in sys.modules])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
