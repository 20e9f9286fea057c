"""Logs: structlog over the standard library, one line an event, set up once a process.

Event names are dotted (`part.done`), facts are keys. Context (`document_id`, `job_id`, `part_id`,
`request_id`, ...) is bound once where it is known and appears on every line below. Document text,
questions, prompts, keys and addresses with credentials are never logged.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TextIO

import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

# Libraries whose INFO is our DEBUG; urllib3 and botocore log addresses and headers at DEBUG.
_QUIET = {
    "botocore": logging.WARNING,
    "boto3": logging.WARNING,
    "s3transfer": logging.WARNING,
    "urllib3": logging.WARNING,
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "kombu": logging.WARNING,
    "celery.worker.strategy": logging.WARNING,  # two lines for each message; we write our own
    "celery.app.trace": logging.WARNING,
    "alembic": logging.WARNING,
}


def setup_logging(
    *,
    level: str,
    style: str,
    service: str,
    version: str = "",
    stream: TextIO | None = None,
) -> None:
    """Set this process's logging up; a second call replaces the first.

    Args:
        level: DEBUG, INFO, WARNING or ERROR, for our own loggers.
        style: `json`, `console`, or `auto` (console when the stream is a terminal).
        service: which process this is; a key of every line.
        stream: defaults to standard output; a command-line program passes standard error.
    """
    target = sys.stdout if stream is None else stream
    is_console = style == "console" or (style == "auto" and target.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        _Facts(service, version),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # loggers made before a fork or a second setup stay right
    )
    ending: list[Processor] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=target.isatty(),
                timestamp_key="ts",
                # the default prints the local variables of every frame: questions and keys
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
        if is_console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, quiet_level in _QUIET.items():
        logging.getLogger(name).setLevel(max(quiet_level, logging.getLevelName(level)))


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger for a module; safe to make at import time."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


class _Facts:
    """Adds which process writes; an explicit key of the event wins."""

    def __init__(self, service: str, version: str) -> None:
        self._facts = {"service": service} | ({"version": version} if version else {})

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        for name, value in self._facts.items():
            event.setdefault(name, value)
        return event
