"""The small JSON files of a model directory, each of which may be absent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.errors import ModelLoadError

if TYPE_CHECKING:
    from pathlib import Path


def read_optional_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty when there is no file.

    Raises ModelLoadError when it is there but is not a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path} is not readable JSON") from error
    if not isinstance(content, dict):
        raise ModelLoadError(f"{path} is not a JSON object")
    return content
