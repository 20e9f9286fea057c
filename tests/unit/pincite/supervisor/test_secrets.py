"""Secrets: made once, only ours, refused once others could have read them."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from core.errors import SettingsError
from pincite.supervisor.secrets import FILE_NAME, load_or_create_secrets, read_secrets


def test_secrets_are_made_once_and_private(tmp_path: Path) -> None:
    made = load_or_create_secrets(tmp_path)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert load_or_create_secrets(tmp_path) == made
    assert read_secrets(tmp_path) == made


def test_two_data_directories_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = load_or_create_secrets(tmp_path / "a"), load_or_create_secrets(tmp_path / "b")
    assert first.admin_key != second.admin_key
    assert first.s3_secret_key != second.s3_secret_key


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    load_or_create_secrets(tmp_path)
    (tmp_path / FILE_NAME).chmod(0o644)
    with pytest.raises(SettingsError, match="can be read by others"):
        load_or_create_secrets(tmp_path)


def test_a_file_of_an_earlier_version_is_completed_and_otherwise_kept(tmp_path: Path) -> None:
    made = load_or_create_secrets(tmp_path)
    file = tmp_path / FILE_NAME
    older = {name: value for name, value in asdict(made).items() if name != "engine_key"}
    file.write_text(json.dumps(older))
    file.chmod(0o600)
    completed = load_or_create_secrets(tmp_path)
    assert completed.engine_key not in ("", made.engine_key)
    assert replace(completed, engine_key=made.engine_key) == made
    assert load_or_create_secrets(tmp_path) == completed
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_nothing_else_is_made_up_for_a_file(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(json.dumps({"admin_key": "x"}))
    file.chmod(0o600)
    with pytest.raises(SettingsError, match=FILE_NAME):
        load_or_create_secrets(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", '["x"]', "not json"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match=FILE_NAME):
        load_or_create_secrets(tmp_path)
