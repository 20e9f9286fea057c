"""Passwords and keys of the embedded stack, made once in the data directory (mode 0600)."""

from __future__ import annotations

import json
import os
import secrets as random_secrets
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from core.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "secrets.json"
# What data directories made by an earlier version do not have: added when the stack is started.
_ADDED_LATER = ("engine_key",)


@dataclass(frozen=True, slots=True)
class StackSecrets:
    """One random value each; never printed except by `pincite config s3`."""

    s3_access_key: str
    s3_secret_key: str
    broker_password: str
    index_key: str
    models_key: str
    admin_key: str
    volume_write_key: str
    volume_read_key: str
    filer_write_key: str
    filer_read_key: str
    engine_key: str


def load_or_create_secrets(data_dir: Path) -> StackSecrets:
    """Read the secrets file, or make it, or add what an earlier version did not have.

    Raises SettingsError when it is unreadable or readable by others (somebody may have seen it).
    """
    path = data_dir / FILE_NAME
    if not path.exists():
        _write_once(path)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise SettingsError(
            f"{path} can be read by others (mode {mode:o})",
            hint=f"chmod 600 {path}, or delete it together with the data directory",
        )
    _complete(path)
    return read_secrets(data_dir)


def read_secrets(data_dir: Path) -> StackSecrets:
    """Raises SettingsError when there is no stack in this data directory or its file is broken."""
    path = data_dir / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return StackSecrets(**{field.name: str(data[field.name]) for field in fields(StackSecrets)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"cannot read {path}", hint="start the stack once with `pincite up`"
        ) from error


def _write_once(path: Path) -> None:
    made = StackSecrets(
        s3_access_key="pincite" + random_secrets.token_hex(6),
        s3_secret_key=random_secrets.token_urlsafe(30),
        broker_password=random_secrets.token_urlsafe(24),
        index_key=random_secrets.token_urlsafe(32),
        models_key=random_secrets.token_urlsafe(32),
        admin_key="pck_" + random_secrets.token_urlsafe(32),
        volume_write_key=random_secrets.token_urlsafe(32),
        volume_read_key=random_secrets.token_urlsafe(32),
        filer_write_key=random_secrets.token_urlsafe(32),
        filer_read_key=random_secrets.token_urlsafe(32),
        engine_key=random_secrets.token_urlsafe(32),
    )
    _write_new(path, asdict(made))


def _complete(path: Path) -> None:
    """Add missing later secrets in one step: a killed process leaves the old file or the new."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # reading it tells what is wrong
    missing = [name for name in _ADDED_LATER if isinstance(found, dict) and name not in found]
    if not missing:
        return
    completed = path.with_name(f".{path.name}.{random_secrets.token_hex(4)}")
    _write_new(completed, found | {name: random_secrets.token_urlsafe(32) for name in missing})
    completed.replace(path)


def _write_new(path: Path, values: dict[str, str]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
