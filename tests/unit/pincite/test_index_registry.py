"""The registry file: what was saved is what is loaded, and a torn write is never seen."""

from pathlib import Path

import pytest

from pincite.servers.index import registry
from pincite.servers.index.errors import BrokenRegistry
from pincite.servers.index.registry import CollectionRecord, RegistryState


def record(name: str) -> CollectionRecord:
    return CollectionRecord(name, "ab12", "2026-01-01T00:00:00+00:00", {"vectors": {}}, {"ü": [1]})


def test_a_missing_file_is_an_empty_registry(tmp_path: Path) -> None:
    assert registry.load(tmp_path / "registry.json") == RegistryState()


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    state = RegistryState({"a": record("a"), "b": record("b")}, {"alias": "a"})
    registry.save(path, RegistryState({"old": record("old")}))
    registry.save(path, state)
    assert registry.load(path) == state
    assert [entry.name for entry in tmp_path.iterdir()] == ["registry.json"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    registry.save(path, RegistryState({"a": record("a")}))
    unwritable = CollectionRecord("b", "cd", "", {"not json": object()})
    with pytest.raises(TypeError):
        registry.save(path, RegistryState({"b": unwritable}))
    assert list(registry.load(path).collections) == ["a"]


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": 2}', '{"format": 1, "collections": [{}], "aliases": {}}'],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "registry.json"
    path.write_text(content)
    with pytest.raises(BrokenRegistry, match="cannot read the index registry"):
        registry.load(path)


def test_a_name_resolves_to_a_collection_before_an_alias() -> None:
    state = RegistryState({"a": record("a")}, {"b": "a"})
    assert [state.resolve(name) for name in ("a", "b", "c")] == ["a", "a", None]
