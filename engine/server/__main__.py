"""`python -m engine.server --model PATH`; `--help` tells the rest."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from engine.errors import InvalidRequest
from engine.server.logs import setup_logging
from engine.server.options import parse_options, set_thread_variables

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        options = parse_options(argv, os.environ)
        set_thread_variables(options.config)
        setup_logging(options.log_level, options.log_format)
        # After the thread variables: the server imports torch, in the thread that loads.
        from engine.server.process import serve

        return serve(options)
    except InvalidRequest as error:
        sys.stderr.write(f"engine: {error}\n")
        return 2


def run(argv: Sequence[str] | None = None) -> None:
    """`main`, and the end of the process, even while a model is being loaded in another thread:
    the interpreter would wait for it, or end badly in the middle of it."""
    try:
        status: int | str | None = main(argv)
    except SystemExit as ended:  # of argparse, or of uvicorn when the port is taken
        status = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    run()
