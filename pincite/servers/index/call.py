"""One request on its way through an operation, and how an update answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import qdrant_edge as edge

from pincite.servers.index.collection import Collection
from pincite.servers.index.errors import reading_values
from pincite.servers.index.points import PointId
from pincite.servers.index.requests import Parameters
from pincite.servers.index.store import IndexStore

MakeOperation = Callable[[], edge.UpdateOperation]


@dataclass(frozen=True)
class Call:
    """What an operation gets.

    Attributes:
        store: all collections.
        path: the path parameters.
        parameters: the checked query string.
        body: the validated body, of the type that the endpoint's table names; None without one.
    """

    store: IndexStore
    path: Mapping[str, str]
    parameters: Parameters
    body: Any = None

    @property
    def name(self) -> str:
        """The collection's name or alias in the path."""
        return self.path["collection_name"]


def updated(
    call: Call,
    collection: Collection,
    makers: Sequence[MakeOperation],
    *,
    existing: Sequence[PointId] = (),
) -> dict[str, Any]:
    """Build all updates, then apply them, and answer as Qdrant does.

    Building comes first: a payload path or value that the edge library cannot read raises there,
    before anything is applied. Raises BadRequest then, and what `Collection.update` raises.
    """
    with reading_values():
        operations = [make() for make in makers]
    number = collection.update(operations, existing=existing)
    return {
        "operation_id": number,
        "status": "completed" if call.parameters.wait else "acknowledged",
    }
