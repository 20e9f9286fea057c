"""Which processes are started: a configured URL replaces its child, and nothing else changes."""

from pathlib import Path

import pytest

from core.settings import Settings, load_settings
from pincite.supervisor.child import ChildSpec
from pincite.supervisor.embedded import fill_embedded
from pincite.supervisor.ports import PortBlock
from pincite.supervisor.secrets import load_or_create_secrets
from pincite.supervisor.stack import stack_specs
from tests.embedded_stack import models_source

ALL = ["broker", "objects", "index", "models", "api", "worker", "sweeper"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "models").symlink_to(models_source())
    return tmp_path


def specs_of(data_dir: Path, **sections: dict[str, object]) -> tuple[Settings, list[ChildSpec]]:
    settings = load_settings({"data_dir": data_dir, **sections})
    secrets = load_or_create_secrets(data_dir)
    ports = PortBlock(20_000)
    filled = fill_embedded(settings, ports, secrets)
    return filled, stack_specs(settings, filled, ports, secrets)


def test_everything_is_ours_when_nothing_is_configured(data_dir: Path) -> None:
    filled, specs = specs_of(data_dir)
    assert [spec.name for spec in specs] == ALL
    assert filled.index.url == "http://127.0.0.1:20007"
    assert filled.objects.endpoint == "http://127.0.0.1:20001"


@pytest.mark.parametrize(
    ("replaced", "sections"),
    [
        ("broker", {"broker": {"url": "redis://elsewhere/0"}}),
        ("objects", {"objects": {"endpoint": "http://s3", "access_key": "a", "secret_key": "b"}}),
        ("index", {"index": {"url": "http://qdrant:6333"}}),
        ("models", {"models": {"url": "http://tei:80"}}),
    ],
)
def test_a_configured_url_replaces_its_child_alone(
    data_dir: Path, replaced: str, sections: dict[str, dict[str, object]]
) -> None:
    filled, specs = specs_of(data_dir, **sections)
    assert [spec.name for spec in specs] == [name for name in ALL if name != replaced]
    (section,) = sections
    kept = getattr(filled, section)
    for name, value in sections[section].items():
        found = getattr(kept, name)
        assert (found.get_secret_value() if hasattr(found, "get_secret_value") else found) == value


def test_a_configured_catalog_is_what_every_process_gets(data_dir: Path) -> None:
    url = "postgresql+psycopg://user@db/pincite"
    _, specs = specs_of(data_dir, catalog={"url": url})
    ours = [spec for spec in specs if spec.name in ("api", "worker", "sweeper")]
    assert {spec.environ["PINCITE_CATALOG__URL"] for spec in ours} == {url}


def test_children_get_a_thread_budget_and_no_secret_on_their_command_line(data_dir: Path) -> None:
    _, specs = specs_of(data_dir)
    secrets = load_or_create_secrets(data_dir)
    values = [getattr(secrets, name) for name in secrets.__slots__]
    for spec in specs:
        assert int(spec.environ["OMP_NUM_THREADS"]) >= 1
        assert not any(value in argument for value in values for argument in spec.arguments)
