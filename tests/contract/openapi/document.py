"""docs/api/openapi.json: `python -m tests.contract.openapi.document` writes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from core.settings import ApiSettings
from pincite import __version__
from query.app import create_app
from query.services import Services

PAGE = Path(__file__).resolve().parents[3] / "docs" / "api" / "openapi.json"
COMMAND = "python -m tests.contract.openapi.document"


def describe_api() -> dict[str, Any]:
    """The OpenAPI document of this release. It depends on nothing but the code."""
    bare = SimpleNamespace(settings=SimpleNamespace(api=ApiSettings()), version=__version__)
    return create_app(cast("Services", bare)).openapi()


def render() -> str:
    return json.dumps(describe_api(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE}\n")
