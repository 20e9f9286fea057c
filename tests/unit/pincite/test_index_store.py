"""Collections under change: aliases all or nothing, deletes that wait, creates that fail."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index import registry
from pincite.servers.index.collection import Collection
from pincite.servers.index.errors import (
    BadRequest,
    CollectionExists,
    IndexOwned,
    UnknownCollection,
)
from pincite.servers.index.registry import CollectionRecord, RegistryState
from pincite.servers.index.store import IndexStore, apply_alias_actions

BODY = wire.CreateCollection(
    vectors={"dense": wire.VectorParams(size=2, distance=wire.Distance.DOT)}
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexStore]:
    store = IndexStore.open(tmp_path)
    yield store
    store.close()


def shards(path: Path) -> list[Path]:
    return list((path / "collections").iterdir())


def create_alias(alias: str, name: str) -> wire.AliasOperations:
    return wire.CreateAliasOperation(
        create_alias=wire.CreateAlias(alias_name=alias, collection_name=name)
    )


def rename_alias(old: str, new: str) -> wire.AliasOperations:
    return wire.RenameAliasOperation(
        rename_alias=wire.RenameAlias(old_alias_name=old, new_alias_name=new)
    )


def delete_alias(alias: str) -> wire.AliasOperations:
    return wire.DeleteAliasOperation(delete_alias=wire.DeleteAlias(alias_name=alias))


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([create_alias("x", "a")], {"x": "a", "old": "b"}),
        ([create_alias("old", "a")], {"old": "a"}),
        ([delete_alias("old")], {}),
        ([delete_alias("nothing")], {"old": "b"}),
        ([rename_alias("old", "new")], {"new": "b"}),
        ([create_alias("x", "a"), rename_alias("x", "old")], {"old": "a"}),
        ([create_alias("x", "old")], UnknownCollection),  # an alias of an alias
        ([create_alias("a", "b")], BadRequest),
        ([rename_alias("old", "a")], BadRequest),
        ([rename_alias("nothing", "x")], UnknownCollection),
        ([create_alias("*", "a")], BadRequest),
    ],
)
def test_alias_actions(
    actions: list[wire.AliasOperations], expected: dict[str, str] | type[Exception]
) -> None:
    records = {name: CollectionRecord(name, name, "", {}) for name in ("a", "b")}
    state = RegistryState(records, {"old": "b"})
    if isinstance(expected, dict):
        assert apply_alias_actions(actions, state) == expected
    else:
        with pytest.raises(expected):
            apply_alias_actions(actions, state)
    assert state.aliases == {"old": "b"}


def test_a_create_whose_commit_fails_leaves_no_shard(
    tmp_path: Path, store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, state: RegistryState) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(registry, "save", full)
    with pytest.raises(OSError, match="No space left"):
        store.create("a", BODY)
    assert shards(tmp_path) == []
    assert not store.has("a")
    monkeypatch.undo()
    store.create("a", BODY)
    assert store.names == ["a"]


def test_a_second_store_of_the_same_directory_is_refused(tmp_path: Path, store: IndexStore) -> None:
    with pytest.raises(IndexOwned):
        IndexStore.open(tmp_path)
    store.close()
    IndexStore.open(tmp_path).close()


def test_names_are_taken_by_collections_and_aliases(store: IndexStore) -> None:
    store.create("a", BODY)
    store.change_aliases(lambda state: apply_alias_actions([create_alias("x", "a")], state))
    for name in ("a", "x"):
        with pytest.raises(CollectionExists):
            store.create(name, BODY)


def test_a_delete_waits_for_those_inside_and_takes_the_aliases(
    tmp_path: Path, store: IndexStore
) -> None:
    store.create("a", BODY)
    store.change_aliases(lambda state: apply_alias_actions([create_alias("x", "a")], state))
    inside, leave = threading.Event(), threading.Event()
    counted: list[int] = []

    def read() -> None:
        with store.use("x") as collection:
            inside.set()
            leave.wait(10)
            counted.append(collection.count())  # still open, although it is gone from the list

    reader = threading.Thread(target=read)
    reader.start()
    assert inside.wait(10)
    deleter = threading.Thread(target=lambda: store.delete("a"))
    deleter.start()
    while store.has("a"):
        pass
    with pytest.raises(UnknownCollection), store.use("a"):
        pass
    assert deleter.is_alive()
    assert len(shards(tmp_path)) == 1
    leave.set()
    for thread in (reader, deleter):
        thread.join(10)
    assert counted == [0]
    assert shards(tmp_path) == []
    assert store.aliases == {}


def test_a_name_that_moves_while_it_is_looked_up_is_looked_up_again(store: IndexStore) -> None:
    store.create("a", BODY)
    store.create("b", BODY)
    store.change_aliases(lambda state: apply_alias_actions([create_alias("x", "a")], state))
    wrong: list[str] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                with store.use("x") as collection:
                    collection.count()
            except UnknownCollection as error:
                wrong.append(str(error))

    looker = threading.Thread(target=look)
    looker.start()
    for new, old in (("b", "a"), ("a", "b")):
        store.change_aliases(
            lambda state, name=new: apply_alias_actions(  # type: ignore[misc]
                [create_alias("x", name)], state
            )
        )
        store.delete(old)
        store.create(old, BODY)
    stop.set()
    looker.join(10)
    assert wrong == []


def test_what_a_closed_store_answers(store: IndexStore) -> None:
    store.create("a", BODY)
    store.close()
    with pytest.raises(UnknownCollection), store.use("a"):
        pass


def test_a_flush_happens_once_per_update(store: IndexStore) -> None:
    flushed: list[int] = []

    class Shard:
        """Counts; everything else is the edge library's business."""

        def update(self, operation: edge.UpdateOperation) -> None:
            return None

        def flush(self) -> None:
            flushed.append(1)

    record = CollectionRecord("a", "a", "", {})
    collection = Collection(record, None, Shard())  # type: ignore[arg-type]
    collection.flush()
    assert flushed == []
    collection.update([edge.UpdateOperation.delete_points([1])])
    collection.flush()
    collection.flush()
    assert flushed == [1]


def test_metadata_merges_through_an_alias(tmp_path: Path, store: IndexStore) -> None:
    store.create("a", BODY.model_copy(update={"metadata": {"keep": 1, "drop": 2}}))
    store.change_aliases(lambda state: apply_alias_actions([create_alias("x", "a")], state))
    store.merge_metadata("x", {"drop": None, "new": {"n": 1}})
    assert store.metadata("a") == {"keep": 1, "new": {"n": 1}}
    with pytest.raises(UnknownCollection):
        store.merge_metadata("nothing", {})
    store.close()
    again = IndexStore.open(tmp_path)
    assert again.metadata("x") == {"keep": 1, "new": {"n": 1}}
    again.close()
