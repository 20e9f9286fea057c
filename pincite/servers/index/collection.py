"""One collection: a shard, its schema, and who may touch it when.

The edge library holds the GIL for the whole of every call (measured: a ticker thread stalls for
exactly the length of a query, an update, a flush). So a call here is never long: updates go in
slices, and `optimize()` is not called while serving (see `maintenance`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import qdrant_edge as edge

from core.errors import InternalError
from pincite.servers.index.errors import BadRequest, UnknownPoint
from pincite.servers.index.locks import UseGate
from pincite.servers.index.points import PointId
from pincite.servers.index.registry import CollectionRecord
from pincite.servers.index.schema import VectorSchema

SLICE_POINTS: Final = 200  # points per shard update: about 4 ms each at 384 dimensions
Result = TypeVar("Result")

# How the edge library starts the messages of mistakes in a request; all its errors are plain
# `Exception`s, so the text is the only way to tell them from failures of the shard.
_REQUEST_MISTAKES: Final = (
    "Not existing vector name",
    "Wrong usage",
    "Vector dimension error",
    "Validation failed",
    "No appropriate index",
    "No range index",
    "Bad request",
)


class Collection:
    """A loaded collection. Readers run side by side, writers one after the other.

    Args:
        record: its registry entry.
        schema: its vectors.
        shard: the open shard, owned from here on.
    """

    def __init__(
        self, record: CollectionRecord, schema: VectorSchema, shard: edge.EdgeShard
    ) -> None:
        self.record = record
        self.schema = schema
        self.gate = UseGate()
        self._shard = shard
        self._writing = threading.Lock()
        self._num_updates = 0
        self._num_flushed = 0

    def read(self, operation: Callable[[edge.EdgeShard], Result]) -> Result:
        """Run a reading operation on the shard.

        Raises BadRequest when the shard says the request is at fault, InternalError otherwise.
        """
        return _guarded(operation, self._shard)

    def update(
        self,
        operations: Sequence[edge.UpdateOperation],
        *,
        existing: Sequence[PointId] = (),
    ) -> int:
        """Apply updates in order, durably against the death of this process.

        Args:
            operations: what to apply.
            existing: ids that must be there, or nothing is applied.

        Returns:
            The number of the last update of this collection since it was loaded.

        Raises:
            UnknownPoint: one of `existing` is not there.
            BadRequest, InternalError: as `read`.
        """
        with self._writing:
            self._require(existing)
            for operation in operations:
                self._num_updates += 1
                _guarded(lambda shard, o=operation: shard.update(o), self._shard)  # type: ignore[misc]
            return self._num_updates

    def _require(self, existing: Sequence[PointId]) -> None:
        # The shard would apply the update to the points that are there, log it, and then refuse.
        if existing:
            found = self.read(lambda shard: shard.retrieve(list(existing), False, False))
            missing = set(existing) - {record.id for record in found}
            if missing:
                raise UnknownPoint(min(missing, key=str))

    def count(self) -> int:
        """Exact number of points."""
        return self.read(lambda shard: shard.count(edge.CountRequest(exact=True)))

    def flush(self) -> None:
        """Write everything to disk, if there was an update since the last time."""
        with self._writing:
            if self._num_updates != self._num_flushed:
                _guarded(lambda shard: shard.flush(), self._shard)
                self._num_flushed = self._num_updates

    def close(self, *, keep: bool = True) -> None:
        """Wait for everybody inside, flush (when it is to be kept) and close the shard.

        Twice is harmless.
        """
        if self.gate.close():
            if keep:
                self.flush()
            self._shard.close()


def create_shard(path: Path, config: edge.EdgeConfig) -> edge.EdgeShard:
    """A new empty shard, flushed. Raises BadRequest for a configuration the library refuses."""
    shard = _guarded(lambda _: edge.EdgeShard.create(str(path), config), None)
    _guarded(lambda _: shard.flush(), None)
    return shard


def load_shard(path: Path, config: edge.EdgeConfig) -> edge.EdgeShard:
    """Open a shard, replaying its log. Raises InternalError when it cannot be read, or when its
    vectors are not those of the configuration."""
    return _guarded(lambda _: edge.EdgeShard.load(str(path), config), None)


Subject = TypeVar("Subject")


def _guarded(operation: Callable[[Subject], Result], subject: Subject) -> Result:
    """The one place where failures of the native library become errors of ours; it raises plain
    `Exception`s and nothing more specific."""
    try:
        return operation(subject)
    except Exception as error:
        message = str(error)
        if message.startswith(_REQUEST_MISTAKES):
            raise BadRequest(f"Wrong input: {message}") from error
        raise InternalError(f"Service internal error: {message}") from error
    except BaseException as error:
        # A panic in Rust arrives as a BaseException of a class that cannot be imported; letting
        # it pass would take the worker thread down and leave the client without an answer.
        if type(error).__name__ != "PanicException":
            raise
        raise InternalError(f"Service internal error: the shard panicked: {error}") from error
