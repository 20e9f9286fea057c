"""Filters: from the client's types to the edge library's, condition by condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy
import qdrant_edge as edge
from qdrant_client.http import models as wire

from pincite.servers.index.errors import BadRequest, UnsupportedField, reading_values
from pincite.servers.index.points import edge_id


def edge_filter(given: wire.Filter | None) -> edge.Filter | None:
    """Translate a filter; None stays None.

    Raises BadRequest for paths, dates and ids that cannot be read, UnsupportedField for
    conditions that are not honoured.
    """
    if given is None:
        return None
    return edge.Filter(
        must=_conditions(given.must),
        should=_conditions(given.should),
        must_not=_conditions(given.must_not),
        min_should=_min_should(given.min_should),
    )


def _min_should(given: wire.MinShould | None) -> edge.MinShould | None:
    if given is None:
        return None
    if given.min_count < 1:
        raise BadRequest("Wrong input: min_should.min_count must be 1 or larger")
    conditions = [_condition(item) for item in given.conditions]
    with reading_values():
        return edge.MinShould(conditions, given.min_count)


def _conditions(given: Any) -> list[edge.ConditionType] | None:
    if given is None:
        return None
    items: Sequence[Any] = given if isinstance(given, list) else [given]
    return [_condition(item) for item in items]


def _field(condition: wire.FieldCondition) -> edge.FieldCondition:
    tests = {
        name: getattr(condition, name)
        for name in ("match", "range", "is_empty", "is_null")
        if getattr(condition, name) is not None
    }
    if len(tests) != 1:
        raise BadRequest(
            f"Wrong input: the condition on `{condition.key}` must hold exactly one test, "
            f"it has {len(tests)}"
        )
    (name, test), = tests.items()  # fmt: skip
    if name == "match":
        return edge.FieldCondition(condition.key, match=_match(test))
    if name == "range":
        return edge.FieldCondition(condition.key, range=_range(test))
    if name == "is_empty":
        return edge.FieldCondition(condition.key, is_empty=test)
    return edge.FieldCondition(condition.key, is_null=test)


def _match_value(value: bool | int | str) -> Any:
    # The edge library tries an integer before a boolean, so it reads True as 1 and finds nothing;
    # numpy's boolean is not an integer to it.
    return numpy.bool_(value) if isinstance(value, bool) else value


_MATCHES: Final[dict[type, Callable[[Any], edge.MatchType]]] = {
    wire.MatchValue: lambda m: edge.MatchValue(_match_value(m.value)),
    wire.MatchAny: lambda m: edge.MatchAny(m.any),
    wire.MatchExcept: lambda m: edge.MatchExcept(m.except_),
    wire.MatchText: lambda m: edge.MatchText(m.text),
    wire.MatchTextAny: lambda m: edge.MatchTextAny(m.text_any),
    wire.MatchPhrase: lambda m: edge.MatchPhrase(m.phrase),
}


def _match(test: Any) -> edge.MatchType:
    translate = _MATCHES.get(type(test))
    if translate is None:
        raise UnsupportedField(f"Not supported by this server: {type(test).__name__}")
    return translate(test)


def _range(test: wire.Range | wire.DatetimeRange) -> edge.RangeType:
    bounds = {name: getattr(test, name) for name in ("gte", "gt", "lte", "lt")}
    if isinstance(test, wire.Range):
        return edge.RangeFloat(**bounds)
    return edge.RangeDateTime(**{name: _rfc3339(value) for name, value in bounds.items()})


def _rfc3339(moment: datetime | date | None) -> str | None:
    # A time without an offset is UTC for Qdrant, in a filter as in a payload.
    return None if moment is None else moment.isoformat()


_CONDITIONS: Final[dict[type, Callable[[Any], edge.ConditionType]]] = {
    wire.FieldCondition: _field,
    wire.IsEmptyCondition: lambda c: edge.IsEmptyCondition(c.is_empty.key),
    wire.IsNullCondition: lambda c: edge.IsNullCondition(c.is_null.key),
    wire.HasIdCondition: lambda c: edge.HasIdCondition({edge_id(item) for item in c.has_id}),
    wire.HasVectorCondition: lambda c: edge.HasVectorCondition(c.has_vector),
    wire.NestedCondition: lambda c: edge.NestedCondition(
        c.nested.key, edge_filter(c.nested.filter) or edge.Filter()
    ),
    wire.Filter: lambda c: edge_filter(c) or edge.Filter(),
}


def _condition(given: Any) -> edge.ConditionType:
    translate = _CONDITIONS.get(type(given))
    if translate is None:
        raise UnsupportedField(f"Not supported by this server: {type(given).__name__}")
    with reading_values():
        return translate(given)
