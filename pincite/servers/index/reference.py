"""The generated half of docs/api/index-subset.md. Run: python -m pincite.servers.index.reference

Everything is read from the tables that the server itself uses; a test compares the page with them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from pincite.servers.index.endpoints import ENDPOINTS, Endpoint
from pincite.servers.index.subset import HONOURED, TRIVIAL

BEGIN: Final = "<!-- generated: endpoints and fields -->"
END: Final = "<!-- end of generated -->"


def render() -> str:
    """Two Markdown tables: endpoints, and fields of every body type."""
    return "\n".join((*_endpoints(), "", *_fields()))


def update(page: str) -> str:
    """The page with its generated part replaced. Raises ValueError when it has no such part."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no generated part")
    return f"{before}{BEGIN}\n{render()}\n{END}{after}"


def _endpoints() -> Iterator[str]:
    yield "| method | path | body | query parameters |"
    yield "|---|---|---|---|"
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace(":path", "").replace("collection_name", "name")
        parameters = ", ".join(f"`{name}`" for name in sorted(endpoint.parameters)) or "-"
        yield f"| {endpoint.method} | `{path}` | {_body(endpoint)} | {parameters} |"


def _body(endpoint: Endpoint) -> str:
    if endpoint.body is None:
        return "-"
    if endpoint.body is Any:
        return "(501 whatever it says)"
    return " or ".join(f"`{item.__name__}`" for item in get_args(endpoint.body) or [endpoint.body])


def _fields() -> Iterator[str]:
    yield "| type | honoured | accepted with one value | refused with 400 |"
    yield "|---|---|---|---|"
    for body, honoured in HONOURED.items():
        rest = set(body.model_fields) - honoured
        trivial = {name: TRIVIAL[body, name] for name in sorted(rest) if (body, name) in TRIVIAL}
        refused = sorted(rest - trivial.keys())
        accepted = (
            f"`{name}` = {', '.join(json.dumps(value) for value in values)}"
            for name, values in trivial.items()
        )
        cells = (_names(body, sorted(honoured)), ", ".join(accepted), _names(body, refused))
        yield f"| `{body.__name__}` | " + " | ".join(cell or "-" for cell in cells) + " |"


def _names(body: type[BaseModel], names: list[str]) -> str:
    return ", ".join(f"`{body.model_fields[name].alias or name}`" for name in names)


if __name__ == "__main__":
    location = Path(sys.argv[1])
    location.write_text(update(location.read_text("utf-8")), "utf-8")
