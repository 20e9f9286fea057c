"""A parser child that does on page n what line n of its "document" says; run as a script.

    text ...     a page with these words         abort      die of SIGABRT
    hang         never come back                 leave      exit with status 3
    sleep        never come back, doing nothing
    eat          allocate memory without end     memory     raise MemoryError
    fault        raise PageFault                 bug        raise an unexpected error
    once abort   abort, but only the first time the file is read (a mark is left beside it)
    chatter      print to stdout, then a page    nonsense   write something else than JSON
    wide         a page with a rectangle outside the page
    network      a page that says whether a connection to anywhere can be made
    environ      a page with the names of the environment's variables

A first line `open <verb>` does it while opening.
"""

import os
import socket
import time
from pathlib import Path

from core.domain.pages import DocumentFacts
from core.errors import CorruptDocument
from ingest.parsing import child
from ingest.parsing.base import PageFault, ParseLimits, RawLine, RawPage, RawSpan


class IllDocument:
    def __init__(self, path: Path, limits: ParseLimits) -> None:
        self._path = path
        self._lines = path.read_text(encoding="utf-8").splitlines()
        if self._lines and self._lines[0].startswith("open "):
            self._do(self._lines.pop(0).removeprefix("open "))
        if not self._lines:
            raise CorruptDocument("nothing is in it")

    @property
    def page_count(self) -> int:
        return len(self._lines)

    def facts(self) -> DocumentFacts:
        return DocumentFacts(len(self._lines), None, None, (), {})

    def read(self, number: int, *, with_chars: bool = False) -> RawPage:
        text = self._do(self._lines[number - 1])
        box = (10.0, 10.0, 90.0, 20.0)
        chars = (box,) * len(text) if with_chars else None
        span = RawSpan(text, box, 10.0, is_bold=False, chars=chars)
        line = RawLine((span,), box, (10.0, 18.0), 0, 0)
        return RawPage(number, 100.0, 100.0, 0, str(number), (line,))

    def render(self, number: int, width_px: int) -> bytes:
        return self._do(self._lines[number - 1]).encode()

    def warnings(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass

    def _do(self, order: str) -> str:
        verb, _, rest = order.partition(" ")
        if verb == "once":
            mark = self._path.with_suffix(".seen")
            if mark.exists():
                return "second time lucky"
            mark.touch()
            verb = rest
        return str(getattr(self, f"_{verb}")(rest))

    def _text(self, words: str) -> str:
        return words

    def _abort(self, _: str) -> None:
        os.abort()

    def _leave(self, _: str) -> None:
        os._exit(3)

    def _hang(self, _: str) -> None:
        while True:  # busy, as a page that never ends is
            pass

    def _sleep(self, _: str) -> None:
        while True:
            time.sleep(60)

    def _eat(self, _: str) -> None:
        held = []
        while True:
            held.append(bytearray(16 * 1024 * 1024))

    def _memory(self, _: str) -> None:
        raise MemoryError

    def _fault(self, _: str) -> None:
        raise PageFault("this page is broken")

    def _bug(self, _: str) -> None:
        raise ZeroDivisionError

    def _chatter(self, _: str) -> str:
        print("a library says something")  # noqa: T201
        os.write(1, b"and another one too\n")
        return "words"

    def _nonsense(self, _: str) -> str:
        for number in range(3, 20):
            try:
                if os.get_blocking(number):
                    os.write(number, b"nonsense\n")
            except OSError:
                continue
        return "words"

    def _network(self, _: str) -> str:
        with socket.socket() as probe:
            probe.settimeout(5)
            return f"errno {probe.connect_ex(('127.0.0.1', 9))}"

    def _environ(self, _: str) -> str:
        return " ".join(sorted(os.environ))


if __name__ == "__main__":
    child.main(lambda: IllDocument)
