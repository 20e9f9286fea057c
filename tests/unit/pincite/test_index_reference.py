"""The page about the subset says what the server's own tables say."""

from pathlib import Path

import pytest

from pincite.servers.index.endpoints import ENDPOINTS
from pincite.servers.index.reference import render, update
from pincite.servers.index.subset import HONOURED

PAGE = Path(__file__).parents[3] / "docs" / "api" / "index-subset.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert update(page) == page, f"run: python -m pincite.servers.index.reference {PAGE.name}"


def test_every_endpoint_and_field_is_on_it() -> None:
    text = render()
    for endpoint in ENDPOINTS:
        assert (
            f"| {endpoint.method} | `{endpoint.path.split(':')[0]}".replace(
                "collection_name", "name"
            )
            in text
        )
    for body in HONOURED:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{body.__name__}` |"))
        for name, field in body.model_fields.items():
            assert f"`{field.alias or name}`" in row, (body, name)


def test_a_page_without_the_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no generated part"):
        update("# nothing")
