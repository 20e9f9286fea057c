"""The table of honoured fields, and the walk that refuses everything else."""

from typing import Any

import pytest
from pydantic import BaseModel
from qdrant_client.http import models as wire

from pincite.servers.index.errors import UnsupportedField
from pincite.servers.index.subset import HONOURED, TRIVIAL, refuse_unsupported


def test_the_table_names_fields_that_exist() -> None:
    for body, fields in HONOURED.items():
        assert fields <= set(body.model_fields), body
    for body, field in TRIVIAL:
        assert field in set(body.model_fields) - HONOURED[body]


def test_every_request_type_forbids_keys_it_does_not_know() -> None:
    # Unknown keys are left to the client's own types: this is what makes that safe.
    for body in HONOURED:
        assert body.model_config.get("extra") == "forbid", body


@pytest.mark.parametrize("body", HONOURED, ids=lambda body: body.__name__)
def test_every_other_field_is_refused_by_name(body: type[BaseModel]) -> None:
    for field in set(body.model_fields) - HONOURED[body]:
        filled = body.model_construct(_fields_set={field}, **{field: "anything"})
        with pytest.raises(UnsupportedField, match=f"`outer.{field}`"):
            refuse_unsupported(filled, "outer")
        # Saying nothing, or saying null, asks for nothing.
        refuse_unsupported(body.model_construct(_fields_set={field}, **{field: None}))


def test_values_that_change_nothing_on_a_single_server_pass() -> None:
    for (body, field), values in TRIVIAL.items():
        for value in values:
            refuse_unsupported(body.model_construct(_fields_set={field}, **{field: value}))


def nested(condition: Any, levels: int) -> Any:
    for _ in range(levels):
        condition = wire.Filter(must=[condition])
    return condition


def test_the_place_of_a_field_deep_inside_is_named() -> None:
    bad = wire.FieldCondition(key="x", values_count=wire.ValuesCount(gt=1))
    body = wire.QueryRequest(
        prefetch=[wire.Prefetch(query=[1.0]), wire.Prefetch(filter=nested(bad, 2))]
    )
    with pytest.raises(UnsupportedField, match=r"prefetch\[1\]\.filter\.must\[0\]\.must\[0\]"):
        refuse_unsupported(body)


def test_a_type_that_is_not_listed_is_refused() -> None:
    with pytest.raises(UnsupportedField, match="SampleQuery at `query`"):
        refuse_unsupported(wire.QueryRequest(query=wire.SampleQuery(sample=wire.Sample.RANDOM)))


def test_the_clients_own_json_is_not_looked_into() -> None:
    point = wire.PointStruct(id=1, vector={}, payload={"shard_key": 1, "deep": [{"wal": 2}]})
    refuse_unsupported(wire.PointsList(points=[point]))
