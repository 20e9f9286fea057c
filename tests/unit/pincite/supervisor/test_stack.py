"""Which processes are started: a configured URL replaces its child, and nothing else changes."""

from pathlib import Path

import pytest

from core.settings import Settings, load_settings
from engine.config import EngineConfig
from engine.server.options import parse_options
from pincite.model_store import ModelNotFetched
from pincite.supervisor.child import ChildSpec
from pincite.supervisor.embedded import fill_embedded
from pincite.supervisor.ports import PortBlock
from pincite.supervisor.secrets import load_or_create_secrets
from pincite.supervisor.stack import stack_specs
from tests.embedded_stack import models_source

ALL = ["broker", "objects", "index", "models", "engine", "api", "worker", "sweeper"]


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
    assert filled.generator.url == "http://127.0.0.1:20009"
    engine = next(spec for spec in specs if spec.name == "engine")
    key = filled.generator.api_key.get_secret_value()
    assert key == load_or_create_secrets(data_dir).engine_key
    assert engine.environ["PINCITE_ENGINE__API_KEY"] == key
    assert engine.environ["OMP_NUM_THREADS"] == str(filled.engine.threads)
    assert engine.environ["OMP_WAIT_POLICY"] == "PASSIVE"


@pytest.mark.parametrize("name", ["models", "engine"])
def test_what_runs_a_model_keeps_little_compiled_code(data_dir: Path, name: str) -> None:
    _, specs = specs_of(data_dir)
    (spec,) = [spec for spec in specs if spec.name == name]
    assert int(spec.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) <= 64
    assert int(spec.environ["LRU_CACHE_CAPACITY"]) <= 64


@pytest.mark.parametrize(
    ("replaced", "sections"),
    [
        ("broker", {"broker": {"url": "redis://elsewhere/0"}}),
        ("objects", {"objects": {"endpoint": "http://s3", "access_key": "a", "secret_key": "b"}}),
        ("index", {"index": {"url": "http://qdrant:6333"}}),
        ("models", {"models": {"url": "http://tei:80"}}),
        ("engine", {"generator": {"url": "http://vllm:8000/v1", "api_key": "k", "model": "m"}}),
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


def test_no_engine_and_no_generator_when_no_model_is_named(data_dir: Path) -> None:
    filled, specs = specs_of(data_dir, engine={"model": ""})
    assert [spec.name for spec in specs] == [name for name in ALL if name != "engine"]
    assert filled.generator.url == ""


def test_the_engine_runs_as_the_settings_say(data_dir: Path) -> None:
    section: dict[str, object] = {
        "device": "cpu",
        "dtype": "float32",
        "threads": 3,
        "max_model_len": 512,
        "max_num_seqs": 5,
        "max_num_batched_tokens": 64,
        "kv_cache_bytes": 1_000_000,
        "max_waiting": 7,
        "api_key": "chosen",
        "extra_api_keys": "a,b",
    }
    filled, specs = specs_of(data_dir, engine=section, log={"level": "WARNING", "format": "json"})
    (spec,) = [spec for spec in specs if spec.name == "engine"]
    server = spec.arguments.index("engine.server") + 1
    options = parse_options(spec.arguments[server:], spec.environ)
    assert options.model_name == "smollm2"
    assert options.port == 20_009
    assert (options.internal_key, options.further_keys) == ("chosen", ("a", "b"))
    assert filled.generator.api_key.get_secret_value() == "chosen"
    assert options.config == EngineConfig(
        model=data_dir / "models" / "smollm2",
        device="cpu",
        dtype="float32",
        threads=3,
        max_model_len=512,
        max_num_seqs=5,
        max_num_batched_tokens=64,
        kv_cache_bytes=1_000_000,
        max_waiting=7,
    )
    assert (options.log_level, options.log_format) == ("WARNING", "json")


def test_a_model_of_ones_own_is_not_converted_beside_itself(data_dir: Path, tmp_path: Path) -> None:
    own = tmp_path / "own" / "model.gguf"
    own.parent.mkdir()
    own.touch()
    _, specs = specs_of(data_dir, engine={"model": str(own)})
    (spec,) = [spec for spec in specs if spec.name == "engine"]
    server = spec.arguments.index("engine.server") + 1
    options = parse_options(spec.arguments[server:], spec.environ)
    assert options.model_name == "model"
    assert options.config.conversion_dir == data_dir / "engine"


@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_weights_that_are_not_there_are_named_with_what_fetches_them(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "models").mkdir()
    other = {"minilm": "smollm2", "smollm2": "minilm"}[name]
    (tmp_path / "models" / other).symlink_to(models_source() / other)
    with pytest.raises(ModelNotFetched) as raised:
        specs_of(tmp_path)
    assert raised.value.hint == f"run: pincite models fetch {name}"


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
