"""One settings object: who wins, what is refused, and how it travels to child processes."""

from pathlib import Path

import pytest

from core.errors import SettingsError
from core.settings import Settings, load_settings, settings_environ


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_arguments_beat_the_environment_and_that_beats_the_file(
    empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_directory / "pincite.toml").write_text(
        'tenant = "from-file"\n[api]\nport = 1\nthreads = 3\nsession_days = 2\n'
    )
    monkeypatch.setenv("PINCITE_API__PORT", "2")
    monkeypatch.setenv("PINCITE_API__THREADS", "4")
    settings = load_settings({"api": {"port": 5}})
    assert (settings.api.port, settings.api.threads, settings.api.session_days) == (5, 4, 2)
    assert settings.tenant == "from-file"


def test_structured_values_are_json_and_replace_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PINCITE_OBJECTS__BUCKETS", '{"reports": "acme"}')
    assert load_settings().objects.buckets == {"reports": "acme"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PINCITE_TYPO", "1", "PINCITE_TYPO"),
        ("PINCITE_API__PRT", "1", "PINCITE_API__PRT"),
        ("PINCITE_TENANT__NAME", "1", "PINCITE_TENANT__NAME"),
        ("PINCITE_API__PORT", "many", "api.port"),
        ("PINCITE_SWEEPER__PURGE_AFTER_S", "5", "sweeper.purge_after_s"),
        ("PINCITE_OBJECTS__BUCKETS", "{", "objects"),
        ("PINCITE_CONFIG", "/nowhere/pincite.toml", "/nowhere/pincite.toml"),
    ],
)
def test_what_is_wrong_is_named(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=said.replace(".", r"\.")):
        load_settings()


def test_a_broken_or_unknown_file_entry_is_refused(empty_directory: Path) -> None:
    file = empty_directory / "pincite.toml"
    file.write_text("[api]\nprt = 1\n")
    with pytest.raises(SettingsError, match=r"api\.prt"):
        load_settings()
    file.write_text("[api\n")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings()


def test_settings_survive_the_way_to_a_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(
        {
            "objects": {
                "buckets": {"a": "b"},
                "secret_key": "s3 'quoted' =",
                "accept_deletes": True,
            },
            "broker": {"url": "redis://:p@127.0.0.1:1/0"},
            "api": {"allowed_hosts": ["x", "y"]},
        }
    )
    for name, value in settings_environ(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


def test_the_cluster_profile_has_its_defaults_and_no_default_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PINCITE_PROFILE", "cluster")
    with pytest.raises(SettingsError, match=r"objects\.secret_key"):
        load_settings()
    given = {
        "catalog": {"url": "postgresql+psycopg://db"},
        "objects": {"endpoint": "http://s3", "access_key": "a", "secret_key": "b"},
        "broker": {"url": "redis://broker"},
        "index": {"url": "http://index"},
        "models": {"url": "http://models"},
    }
    settings = load_settings(given)
    assert settings.objects.reconcile_s == 300.0
    assert load_settings({**given, "api": {"port": 9}}).api.port == 9


def test_secrets_do_not_show_in_a_repr() -> None:
    settings = load_settings({"models": {"api_key": "very-secret"}})
    assert "very-secret" not in repr(settings)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().tenant = "other"  # type: ignore[misc]
