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


def load_or_create_secrets(data_dir: Path) -> StackSecrets:
    """Read the secrets file, or make it. Raises SettingsError when it is unreadable or readable by
    others (somebody may have seen it)."""
    path = data_dir / FILE_NAME
    if not path.exists():
        _write_once(path)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise SettingsError(
            f"{path} can be read by others (mode {mode:o})",
            hint=f"chmod 600 {path}, or delete it together with the data directory",
        )
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
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(made), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
