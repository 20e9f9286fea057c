"""How fast files are read: `python -m bench.parse FILE... [--pages 100]`.

For each file, in pages a second: reading by the library alone, our layout alone, both (by processor
time), and through the sandboxed child as a worker does it (by the clock); then what the child holds
in memory. Numbers depend on the machine, which is printed first.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.settings import ParserSettings
from ingest.layout.compose import compose
from ingest.parsing.base import ParseLimits
from ingest.parsing.pdf import PdfDocument
from ingest.parsing.sandbox import Parser

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGES_PER_PART = 32


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=100, help="at most so many of each file")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, ", end="")
    print(f"Python {platform.python_version()}")
    columns = ("pages", "library", "layout", "in all", "child")
    print(f"{'file':40} " + "".join(f"{column:>9}" for column in columns) + "  MiB")
    for path in arguments.files:
        measure(path, arguments.pages)


def measure(path: Path, max_pages: int) -> None:
    settings = ParserSettings()
    document = PdfDocument(path, ParseLimits.of(settings))
    count = min(document.page_count, max_pages)
    numbers = range(1, count + 1)
    raws = [document.read(number) for number in numbers]  # also warms the caches
    library = cpu_seconds(lambda: [document.read(number) for number in numbers])
    layout = cpu_seconds(lambda: [compose(raw) for raw in raws])
    document.close()
    with Parser(settings) as parser:
        parser.parse(path, 1, 1)  # the child is running
        started = time.perf_counter()
        for first in range(1, count + 1, _PAGES_PER_PART):
            parser.parse(path, first, min(first + _PAGES_PER_PART - 1, count))
        wall = time.perf_counter() - started
        mebibytes = parser.child_rss_bytes() >> 20
    rates = (count / library, count / layout, count / (library + layout), count / wall)
    print(f"{path.name[-40:]:40} {count:8}" + "".join(f"{r:9.0f}" for r in rates), f"{mebibytes:4}")


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return max(time.process_time() - started, 1e-6)


if __name__ == "__main__":
    main()
