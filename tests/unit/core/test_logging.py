"""One line an event, with its context, whether it comes from us or from a library."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from core.logging import get_logger, setup_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_pipe_gets_json_with_context_and_facts() -> None:
    stream = io.StringIO()
    log = get_logger("ingest.pipeline")
    setup_logging(level="INFO", style="auto", service="worker", version="1.2", stream=stream)
    with structlog.contextvars.bound_contextvars(document_id="doc_1"):
        log.info("part.ended", duration_ms=12)
    (line,) = lines(stream)
    assert line.pop("ts")
    assert line == {
        "event": "part.ended",
        "level": "info",
        "service": "worker",
        "version": "1.2",
        "document_id": "doc_1",
        "duration_ms": 12,
    }


def test_libraries_log_in_the_same_shape_and_the_chatty_ones_less() -> None:
    stream = io.StringIO()
    setup_logging(level="INFO", style="json", service="worker", stream=stream)
    logging.getLogger("celery.worker").info("ready")
    logging.getLogger("botocore.endpoint").info("an address")
    logging.getLogger("urllib3.connectionpool").warning("retrying")
    assert [(line["event"], line["service"]) for line in lines(stream)] == [
        ("ready", "worker"),
        ("retrying", "worker"),
    ]


def test_below_the_level_nothing_is_written() -> None:
    stream = io.StringIO()
    setup_logging(level="WARNING", style="json", service="x", stream=stream)
    get_logger("a").info("quiet")
    get_logger("a").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_an_exception_is_one_line() -> None:
    stream = io.StringIO()
    setup_logging(level="INFO", style="json", service="x", stream=stream)
    try:
        raise ValueError("inner")
    except ValueError:
        get_logger("a").exception("part.crashed")
    (line,) = lines(stream)
    assert "ValueError: inner" in str(line["exception"])


def test_a_console_is_for_people() -> None:
    stream = io.StringIO()
    setup_logging(level="INFO", style="console", service="x", stream=stream)
    get_logger("a").info("part.ended", pages=3)
    assert "part.ended" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_setting_up_again_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    log = get_logger("a")
    setup_logging(level="INFO", style="json", service="one", stream=first)
    log.info("before")
    setup_logging(level="INFO", style="json", service="two", stream=second)
    log.info("after")
    assert [line["event"] for line in lines(first)] == ["before"]
    assert [(line["event"], line["service"]) for line in lines(second)] == [("after", "two")]
