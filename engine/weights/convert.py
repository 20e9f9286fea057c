"""`python -m engine.weights.convert FILE`: convert a GGUF file before the engine's first start."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from engine.errors import EngineError
from engine.weights.conversion import convert_once
from engine.weights.dtypes import dtype_name, resolve_dtype


def main(argv: list[str] | None = None) -> int:
    """Prints one line of JSON: directory, dtype, seconds. Exit status 1 with a sentence on stderr
    when the file cannot be used."""
    parser = argparse.ArgumentParser(prog="engine.weights.convert", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--device", default="auto", help="whose best dtype `auto` means")
    parser.add_argument("--conversion-dir", type=Path)
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    try:
        dtype = resolve_dtype(arguments.dtype, arguments.device)
        directory = convert_once(arguments.file, dtype, arguments.conversion_dir)
    except EngineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    result = {
        "directory": str(directory),
        "dtype": dtype_name(dtype),
        "seconds": round(time.perf_counter() - started, 3),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
