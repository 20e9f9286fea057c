"""Log lines of the server: one a line, facts as keys, as JSON or for a terminal."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO


def setup_logging(level: str, style: str, stream: TextIO | None = None) -> None:
    """Set up this process's logging.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        style: `json`, `console`, or `auto` (console when the stream is a terminal).
        stream: standard error, unless given.
    """
    target = sys.stderr if stream is None else stream
    is_console = style == "console" or (style == "auto" and target.isatty())
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Console() if is_console else _Json())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # of libraries
    logging.getLogger("engine").setLevel(level)


class _Json(logging.Formatter):
    """The same keys as every other process of a deployment."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "service": "engine",
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Console(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {name}={value}" for name, value in getattr(record, "facts", {}).items())
        line = f"{record.levelname.lower():8} {record.getMessage()}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
