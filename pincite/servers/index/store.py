"""All collections and aliases of one data directory, with one owner.

Layout: `owner.lock`, `registry.json` (see `registry`), `collections/<random hex>/` per shard.
Reading needs no lock: the state is one object that changes replace after they are on disk.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from qdrant_client.http import models as wire

from core.errors import InternalError, PinciteError
from core.logging import get_logger
from pincite.servers.index import registry
from pincite.servers.index.collection import Collection, create_shard, load_shard
from pincite.servers.index.errors import (
    BadRequest,
    BrokenRegistry,
    CollectionExists,
    UnknownCollection,
    reading_values,
)
from pincite.servers.index.locks import OwnerLock
from pincite.servers.index.registry import CollectionRecord, RegistryState
from pincite.servers.index.schema import check_collection_name, edge_config, vector_schema

FLUSH_INTERVAL_S: Final = 5.0
_log = get_logger(__name__)


@dataclass(frozen=True)
class _View:
    state: RegistryState
    loaded: Mapping[str, Collection]


class IndexStore:
    """Open with `IndexStore.open`, close with `close`."""

    def __init__(self, data_dir: Path, lock: OwnerLock, search_threads: int | None) -> None:
        self._data_dir = data_dir
        self._lock = lock
        self._search_threads = search_threads
        self._changing = threading.Lock()
        self._view = _View(RegistryState(), {})
        self._stopping = threading.Event()
        self._flusher = threading.Thread(target=self._flush_often, name="flush", daemon=True)

    @classmethod
    def open(cls, data_dir: Path, *, search_threads: int | None = None) -> IndexStore:
        """Take the directory, remove half-made shards and load the rest.

        Args:
            data_dir: created when missing.
            search_threads: threads per shard; None = one per processor.

        Raises:
            IndexOwned: another process has the directory.
            BrokenRegistry: the registry or a shard cannot be read.
        """
        (data_dir / "collections").mkdir(parents=True, exist_ok=True)
        lock = OwnerLock(data_dir / "owner.lock")
        lock.acquire()
        store = cls(data_dir, lock, search_threads)
        try:
            store._load()
        except PinciteError:
            store.close()
            raise
        store._flusher.start()
        return store

    def _load(self) -> None:
        state = registry.load(self._registry_path)
        named = {record.directory for record in state.collections.values()}
        for path in (self._data_dir / "collections").iterdir():
            if path.name not in named:
                shutil.rmtree(path)
        loaded: dict[str, Collection] = {}
        self._view = _View(state, loaded)
        for record in state.collections.values():
            path = self._shard_path(record.directory)
            body = wire.CreateCollection.model_validate(record.config)
            try:
                shard = load_shard(path, edge_config(body, self._search_threads))
            except InternalError as error:
                raise BrokenRegistry(
                    f"cannot load the shard of collection `{record.name}` in {path}: {error}",
                    hint="move the data directory away and rebuild the index from the catalog",
                ) from error
            loaded[record.name] = Collection(record, vector_schema(body), shard)

    @property
    def _registry_path(self) -> Path:
        return self._data_dir / registry.FILE_NAME

    def _shard_path(self, directory: str) -> Path:
        return self._data_dir / "collections" / directory

    @property
    def aliases(self) -> Mapping[str, str]:
        """Alias -> collection name."""
        return self._view.state.aliases

    @property
    def names(self) -> list[str]:
        """Names of all collections, without aliases."""
        return sorted(self._view.state.collections)

    def has(self, name: str) -> bool:
        """Whether a collection or alias has this name."""
        return self._view.state.resolve(name) is not None

    @contextmanager
    def use(self, name: str) -> Iterator[Collection]:
        """The collection that a name or alias means now, kept open for the block.

        Raises UnknownCollection.
        """
        while True:
            view = self._view
            target = view.state.resolve(name)
            if target is None:
                raise UnknownCollection(name)
            collection = view.loaded[target]
            with collection.gate.hold() as entered:
                if entered:
                    yield collection
                    return
            if view is self._view:  # closed although still listed: the store is closing
                raise UnknownCollection(name)

    def create(self, name: str, body: wire.CreateCollection) -> None:
        """Create a collection: on return it is on disk. Raises BadRequest, CollectionExists."""
        check_collection_name(name)
        schema = vector_schema(body)
        with reading_values():
            config = edge_config(body, self._search_threads)
        content = json.loads(body.model_dump_json(exclude_none=True, exclude={"metadata"}))
        created_at = datetime.now(UTC).isoformat()
        record = CollectionRecord(name, uuid4().hex, created_at, content, body.metadata)
        with self._changing:
            state = self._view.state
            if name in state.collections or name in state.aliases:
                raise CollectionExists(f"Wrong input: Collection `{name}` already exists!")
            path = self._shard_path(record.directory)
            collection = Collection(record, schema, create_shard(path, config))
            try:
                self._commit(
                    replace(state, collections={**state.collections, name: record}),
                    {**self._view.loaded, name: collection},
                )
            except OSError:
                collection.close(keep=False)
                shutil.rmtree(path, ignore_errors=True)
                raise

    def delete(self, name: str) -> bool:
        """Delete a collection and its aliases; False when there is none of this name.

        An alias is not followed: deleting through an alias would be a surprise.
        """
        with self._changing:
            state = self._view.state
            if name not in state.collections:
                return False
            collection = self._view.loaded[name]
            self._commit(
                RegistryState(
                    {key: record for key, record in state.collections.items() if key != name},
                    {alias: to for alias, to in state.aliases.items() if to != name},
                ),
                {key: item for key, item in self._view.loaded.items() if key != name},
            )
        collection.close(keep=False)
        shutil.rmtree(self._shard_path(collection.record.directory), ignore_errors=True)
        return True

    def change_aliases(self, change: Callable[[RegistryState], Mapping[str, str]]) -> None:
        """Replace all aliases at once by what `change` makes of the present state."""
        with self._changing:
            state = replace(self._view.state, aliases=change(self._view.state))
            self._commit(state, self._view.loaded)

    def merge_metadata(self, name: str, metadata: Mapping[str, Any]) -> None:
        """Merge into a collection's metadata; a None removes its key. Raises UnknownCollection."""
        with self._changing:
            state = self._view.state
            target = state.resolve(name)
            if target is None:
                raise UnknownCollection(name)
            record = state.collections[target]
            merged = {**(record.metadata or {}), **metadata}
            kept = {key: value for key, value in merged.items() if value is not None}
            changed = {**state.collections, target: replace(record, metadata=kept)}
            self._commit(replace(state, collections=changed), self._view.loaded)

    def metadata(self, name: str) -> dict[str, Any] | None:
        """The metadata of the collection that a name or alias means. Raises UnknownCollection."""
        state = self._view.state
        target = state.resolve(name)
        if target is None:
            raise UnknownCollection(name)
        return state.collections[target].metadata

    def _commit(self, state: RegistryState, loaded: Mapping[str, Collection]) -> None:
        registry.save(self._registry_path, state)
        self._view = _View(state, loaded)

    def flush(self) -> None:
        """Flush every collection that was updated since its last flush."""
        for collection in list(self._view.loaded.values()):
            with collection.gate.hold() as entered:
                if entered:
                    collection.flush()

    def _flush_often(self) -> None:
        # Bounds how much log a start after a crash has to replay, and what a power cut can take.
        while not self._stopping.wait(FLUSH_INTERVAL_S):
            try:
                self.flush()
            except InternalError:
                # A full disk must not end the thread: the log still has the updates, and the
                # next round tries again.
                _log.exception("index.flush_failed")

    def close(self) -> None:
        """Stop flushing, close every shard, and give the directory back. Twice is harmless."""
        self._stopping.set()
        if self._flusher.is_alive():
            self._flusher.join()
        for collection in self._view.loaded.values():
            collection.close()
        self._lock.release()


def apply_alias_actions(
    actions: list[wire.AliasOperations], state: RegistryState
) -> dict[str, str]:
    """The aliases after a list of actions, all or nothing.

    Raises UnknownCollection for a target that is not a collection (or a renamed alias that does
    not exist), BadRequest for an alias with the name of a collection.
    """
    aliases = dict(state.aliases)
    for action in actions:
        if isinstance(action, wire.CreateAliasOperation):
            if action.create_alias.collection_name not in state.collections:
                raise UnknownCollection(action.create_alias.collection_name)
            _free_name(action.create_alias.alias_name, state)
            aliases[action.create_alias.alias_name] = action.create_alias.collection_name
        elif isinstance(action, wire.DeleteAliasOperation):
            aliases.pop(action.delete_alias.alias_name, None)
        else:
            old, new = action.rename_alias.old_alias_name, action.rename_alias.new_alias_name
            _free_name(new, state)
            if old not in aliases:
                raise UnknownCollection(old)
            aliases[new] = aliases.pop(old)
    return aliases


def _free_name(alias: str, state: RegistryState) -> None:
    check_collection_name(alias)
    if alias in state.collections:
        raise BadRequest(f"Wrong input: Collection `{alias}` already exists!")
