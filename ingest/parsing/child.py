"""The parser child: `python -m ingest.parsing.child`, JSON lines on stdin and stdout.

    <- {"limits": {...}, "parent": pid or null}            once
    -> {"ready": {"network": "isolated", ...}}
    <- {"do": "parse", "path": P, "first": 1, "last": 32}
    -> {"facts": {...}}  {"page": {...}}...  {"done": {"warnings": [...]}}
    <- {"do": "render", "path": P, "page": 7, "width_px": 900, "into": FILE}
    -> {"done": {"bytes": n}}
    <- {"do": "words", "path": P, "page": 7, "start": 10, "end": 40}
    -> {"done": {"text": "...", "rects": [[x0, y0, x1, y1], ...]}}
    -> {"error": {"code": "needs_password", "message": "...", "hint": "..."}}   in place of any

It ends when its stdin does. A page that raises is reported as failed and the next one is tried; a
page that crashes, hangs or eats memory takes the child with it, and the parent knows which it was.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from core.domain.pages import PageOutcome
from core.errors import DocumentError
from ingest.layout.compose import compose, outline_of_page
from ingest.parsing.base import PageFault, ParseLimits, failed_page
from ingest.parsing.hardening import harden, set_alarm
from ingest.parsing.wire import facts_to_wire, page_to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from core.domain.pages import DocumentFacts, Page
    from ingest.parsing.base import SourceDocument

    Opener = Callable[[Path, ParseLimits], SourceDocument]

_Json = dict[str, Any]

# The parent kills at the page limit, or at four times it on a starved machine.
_ALARM_FACTOR = 6.0


def _load_pdf() -> Opener:
    from ingest.parsing.pdf import PdfDocument  # it may start threads: not before hardening

    return PdfDocument


def main(load_opener: Callable[[], Opener] = _load_pdf) -> None:
    """Serve until stdin ends. `load_opener` is called after the process has limited itself."""
    answers = _take_stdout()
    requests = sys.stdin.buffer
    hello = json.loads(requests.readline() or b"null")
    if hello is None:
        return
    limits = ParseLimits(**hello["limits"])
    report = harden(limits, parent_pid=hello["parent"])
    opener = load_opener()
    _say(answers, {"ready": report})
    serve(requests, answers, limits, opener)


def serve(requests: BinaryIO, answers: BinaryIO, limits: ParseLimits, opener: Opener) -> None:
    """Answer each request line; `opener` opens a file."""
    handlers = {"parse": _parse, "render": _render, "words": _words}
    for line in requests:
        request = json.loads(line)
        set_alarm(_ALARM_FACTOR * limits.page_timeout_s)
        try:
            for answer in handlers[request["do"]](request, limits, opener):
                _say(answers, answer)
                set_alarm(_ALARM_FACTOR * limits.page_timeout_s)
        except DocumentError as error:
            _say(answers, _error(error.code, error.message, error.hint))
        except PageFault as error:
            _say(answers, _error("page_failed", error.reason, None))
        except MemoryError:
            _say(answers, _error("parser_out_of_memory", "the parser ran out of memory", None))
        except Exception as error:  # noqa: BLE001 - an edge: the parent gets the kind, not the text
            _say(
                answers,
                _error("parser_failed", f"the parser failed ({type(error).__name__})", None),
            )
        finally:
            set_alarm(0)


def _parse(request: _Json, limits: ParseLimits, opener: Opener) -> Iterator[_Json]:
    document = opener(Path(request["path"]), limits)
    try:
        facts = document.facts()
        yield {"facts": facts_to_wire(facts)}
        for number in range(request["first"], min(request["last"], facts.page_count) + 1):
            yield {"page": page_to_wire(_read_page(document, facts, number))}
        yield {"done": {"warnings": list(document.warnings())}}
    finally:
        document.close()


def _read_page(document: SourceDocument, facts: DocumentFacts, number: int) -> Page:
    try:
        return compose(document.read(number), outline_of_page(facts, number)).page
    except PageFault as error:
        return failed_page(number, PageOutcome.FAILED, error.reason)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug of ours on one page costs only this page
        reason = f"the page could not be laid out ({type(error).__name__})"
        return failed_page(number, PageOutcome.FAILED, reason)


def _render(request: _Json, limits: ParseLimits, opener: Opener) -> Iterator[_Json]:
    document = opener(Path(request["path"]), limits)
    try:
        picture = document.render(_page_number(request, document), request["width_px"])
    finally:
        document.close()
    Path(request["into"]).write_bytes(picture)
    yield {"done": {"bytes": len(picture)}}


def _words(request: _Json, limits: ParseLimits, opener: Opener) -> Iterator[_Json]:
    document = opener(Path(request["path"]), limits)
    try:
        number = _page_number(request, document)
        raw = document.read(number, with_chars=True)
        composed = compose(raw, outline_of_page(document.facts(), number))
    finally:
        document.close()
    start, end = request["start"], request["end"]
    yield {
        "done": {
            "text": composed.page.text[start:end],
            "rects": composed.word_rects(start, end, raw),
        }
    }


def _page_number(request: dict[str, Any], document: SourceDocument) -> int:
    number: int = request["page"]
    if not 1 <= number <= document.page_count:
        raise PageFault("there is no such page")
    return number


def _error(code: str, message: str, hint: str | None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": hint}}


def _say(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    answers.flush()


def _take_stdout() -> BinaryIO:
    """The real stdout for answers; whatever a library prints goes to stderr instead."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
