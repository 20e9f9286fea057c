"""Directories of safetensors: what is read, what is refused, and what tells them apart."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine.errors import ModelLoadError
from engine.weights.loading import Checkpoint, open_checkpoint
from tests.builders_gguf import TinyModel

INDEX = "model.safetensors.index.json"
WEIGHTS = {
    "a.weight": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "b.weight": torch.full((5,), 0.5, dtype=torch.bfloat16),
    "b.positions": torch.arange(3),
}


def write(directory: Path, weights: dict[str, torch.Tensor] = WEIGHTS, **config: Any) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps({"model_type": "llama"} | config))
    (directory / "tokenizer.json").write_text("{}")
    save_file(weights, directory / "model.safetensors")
    return directory


def write_sharded(directory: Path, weight_map: dict[str, str]) -> Path:
    write(directory)
    (directory / "model.safetensors").unlink()
    for number, name in enumerate(WEIGHTS, start=1):
        save_file({name: WEIGHTS[name]}, directory / f"model-{number}-of-3.safetensors")
    (directory / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return directory


SHARDS = {name: f"model-{number}-of-3.safetensors" for number, name in enumerate(WEIGHTS, 1)}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write(tmp_path / "model")


def check(checkpoint: Checkpoint) -> None:
    assert set(checkpoint.names) == set(WEIGHTS)
    for name, expected in WEIGHTS.items():
        found = checkpoint.tensor(name)
        is_float = expected.is_floating_point()
        assert found.dtype == (checkpoint.dtype if is_float else expected.dtype)
        assert torch.equal(found, expected.to(found.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_directory_is_read_in_the_dtype_asked_for(directory: Path, dtype: torch.dtype) -> None:
    checkpoint = open_checkpoint(directory, dtype)
    check(checkpoint)
    assert checkpoint.directory == directory
    assert checkpoint.config == {"model_type": "llama"}


def test_shards_are_read_through_the_index(tmp_path: Path) -> None:
    directory = write_sharded(tmp_path / "model", SHARDS)
    (directory / "model-4-of-3.safetensors").write_bytes(b"not in the index, not opened")
    check(open_checkpoint(directory, torch.float32))


def test_tensors_in_the_right_dtype_are_views_of_the_file(directory: Path) -> None:
    checkpoint = open_checkpoint(directory, torch.float32)
    first, second = checkpoint.tensor("a.weight"), checkpoint.tensor("a.weight")
    assert first.data_ptr() == second.data_ptr()


def test_an_unknown_tensor_is_named(directory: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"no tensor c\.weight"):
        open_checkpoint(directory, torch.float32).tensor("c.weight")


class TestRefused:
    def refuse(self, model: Path, words: str) -> None:
        with pytest.raises(ModelLoadError, match=words):
            open_checkpoint(model, torch.float32)

    @pytest.mark.parametrize("value", [{"AutoModel": "modeling.Evil"}, {}, None])
    def test_a_config_that_asks_for_code(self, tmp_path: Path, value: Any) -> None:
        self.refuse(write(tmp_path / "model", auto_map=value), "auto_map")

    @pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.pth", "a.pkl"])
    def test_pickled_weights(self, directory: Path, name: str) -> None:
        (directory / "model.safetensors").rename(directory / name)
        self.refuse(directory, "pickled")

    def test_pickles_beside_safetensors_are_never_opened(self, directory: Path) -> None:
        (directory / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
        check(open_checkpoint(directory, torch.float32))

    @pytest.mark.parametrize(
        "name",
        [
            "../outside.safetensors",
            "/etc/outside.safetensors",
            "sub/outside.safetensors",
            "..",
            "",
            "model-1-of-3.bin",
            "sub\\outside.safetensors",
        ],
    )
    def test_an_index_that_leaves_the_directory(self, tmp_path: Path, name: str) -> None:
        save_file({"a.weight": WEIGHTS["a.weight"]}, tmp_path / "outside.safetensors")
        directory = write_sharded(tmp_path / "model", SHARDS | {"a.weight": name})
        (directory / "sub").mkdir()
        shutil.copy(tmp_path / "outside.safetensors", directory / "sub")
        self.refuse(directory, "not a file beside it")

    def test_an_index_of_a_missing_file(self, tmp_path: Path) -> None:
        directory = write_sharded(tmp_path / "model", SHARDS)
        (directory / "model-2-of-3.safetensors").unlink()
        self.refuse(directory, "model-2-of-3.safetensors, which is missing")

    @pytest.mark.parametrize("content", ["", "[]", '{"weight_map": []}', '{"weight_map": {}}'])
    def test_an_index_without_a_map(self, tmp_path: Path, content: str) -> None:
        directory = write_sharded(tmp_path / "model", SHARDS)
        (directory / INDEX).write_text(content)
        self.refuse(directory, "index")

    def test_one_tensor_in_two_files(self, tmp_path: Path) -> None:
        directory = write_sharded(tmp_path / "model", SHARDS)
        shutil.copy(directory / SHARDS["a.weight"], directory / SHARDS["b.weight"])
        self.refuse(directory, r"a\.weight is in two files")

    @pytest.mark.parametrize(
        "content",
        [b"", b"\x00" * 4, (2**40).to_bytes(8, "little") + b"{}", b"\x08" + bytes(7) + b"notjson!"],
    )
    def test_weights_that_are_none(self, directory: Path, content: bytes) -> None:
        (directory / "model.safetensors").write_bytes(content)
        self.refuse(directory, "not a safetensors file")

    def test_shortened_weights(self, directory: Path) -> None:
        path = directory / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-2])
        self.refuse(directory, "not a safetensors file")

    def test_no_weights(self, directory: Path) -> None:
        (directory / "model.safetensors").unlink()
        self.refuse(directory, "neither")

    @pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000])
    def test_a_config_that_is_none(self, directory: Path, content: str) -> None:
        (directory / "config.json").write_text(content)
        self.refuse(directory, "JSON")

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        self.refuse(tmp_path / "absent", "there is no model")
        (tmp_path / "weights.bin").write_bytes(b"")
        self.refuse(tmp_path / "weights.bin", "neither a model directory nor")


class TestGgufInADirectory:
    def test_a_single_one_is_the_model(self, tmp_path: Path) -> None:
        path = TinyModel().write(tmp_path / "tiny.GGUF")
        assert open_checkpoint(tmp_path, torch.float32).directory == (
            tmp_path / "tiny.GGUF.converted" / "float32"
        )
        assert open_checkpoint(path, torch.float32).config["model_type"] == "llama"

    def test_of_several_one_must_be_named(self, tmp_path: Path) -> None:
        for name in ("a.gguf", "b.gguf"):
            TinyModel().write(tmp_path / name)
        with pytest.raises(ModelLoadError, match=r"a\.gguf, b\.gguf"):
            open_checkpoint(tmp_path, torch.float32)


class TestFingerprint:
    def of(self, directory: Path) -> str:
        return open_checkpoint(directory, torch.float32).fingerprint

    def test_it_is_that_of_a_copy(self, directory: Path, tmp_path: Path) -> None:
        copied = shutil.copytree(directory, tmp_path / "copy", copy_function=shutil.copyfile)
        assert self.of(copied) == self.of(directory)
        assert len(self.of(directory)) == 64

    def test_it_differs_by_dtype_configuration_tokenizer_and_weights(self, tmp_path: Path) -> None:
        base = write(tmp_path / "base")
        config = write(tmp_path / "config", rope_theta=5.0)
        tokenizer = write(tmp_path / "tokenizer")
        (tokenizer / "tokenizer.json").write_text('{"a": 1}')
        tuned = write(tmp_path / "tuned", {name: value + 1 for name, value in WEIGHTS.items()})
        renamed = write(tmp_path / "renamed", {f"x{name}": v for name, v in WEIGHTS.items()})
        found = [self.of(path) for path in (base, config, tokenizer, tuned, renamed)]
        found.append(open_checkpoint(base, torch.bfloat16).fingerprint)
        assert len(set(found)) == len(found)

    def test_it_sees_training_of_weights_that_are_too_large_to_hash(self, tmp_path: Path) -> None:
        weights = torch.zeros(1 << 20)
        base = write(tmp_path / "base", {"w": weights})
        tuned = write(tmp_path / "tuned", {"w": weights + 1e-6})
        assert self.of(base) != self.of(tuned)

    def test_a_manifest_that_does_not_fit_the_files_is_not_believed(
        self, directory: Path, tmp_path: Path
    ) -> None:
        converted = open_checkpoint(TinyModel().write(tmp_path / "m.gguf"), torch.float32)
        before = self.of(directory)
        shutil.copy(converted.directory / "conversion.json", directory)
        assert self.of(directory) == before
