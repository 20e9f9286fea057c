"""Log lines: JSON with the keys of every process, or for a terminal."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from engine.server.logs import setup_logging


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("engine")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_json_lines_have_facts_as_keys() -> None:
    stream = io.StringIO()
    setup_logging("INFO", "auto", stream)
    log = logging.getLogger("engine.server.anything")
    log.debug("not shown")
    log.info("engine.request", extra={"facts": {"status": 200}})
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("engine.unexpected")
    logging.getLogger("some.library").info("not shown")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["status"], first["level"]) == ("engine.request", 200, "info")
    assert first["service"] == "engine"
    assert "T" in first["ts"]
    assert "ValueError: why" in second["exception"]


def test_a_terminal_gets_words() -> None:
    stream = io.StringIO()
    setup_logging("DEBUG", "console", stream)
    logging.getLogger("engine.x").debug("engine.request", extra={"facts": {"status": 200}})
    assert stream.getvalue() == "debug    engine.request status=200\n"
