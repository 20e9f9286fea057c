"""`python -m pincite.servers.index --data-dir D --host 127.0.0.1 --port P`.

The API key comes from the environment variable PINCITE_INDEX__API_KEY, never from the command
line, where other users of the machine could read it. Exit status: 0 stopped cleanly, 2 wrong
usage, 4 the data directory is owned by another process or cannot be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.errors import PinciteError, SettingsError
from core.logging import setup_logging
from pincite.servers.index.maintenance import optimize_all
from pincite.servers.index.server import ServerOptions, serve

KEY_VARIABLE = "PINCITE_INDEX__API_KEY"


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pincite serve index", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6333)
    parser.add_argument("--allowed-host", action="append", default=[], metavar="NAME")
    parser.add_argument("--search-threads", type=int, default=None, metavar="N")
    parser.add_argument("--no-auth", action="store_true", help="serve without an API key")
    parser.add_argument(
        "--optimize", action="store_true", help="optimise the shards of a stopped index, and exit"
    )
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _arguments(argv)
    try:
        if arguments.optimize:
            for name, changed in optimize_all(
                arguments.data_dir, search_threads=arguments.search_threads
            ).items():
                sys.stdout.write(f"{name}\t{'optimised' if changed else 'already optimal'}\n")
        else:
            options = _options(arguments)
            setup_logging(level="INFO", style="auto", service="index", stream=sys.stderr)
            serve(options)
    except PinciteError as error:
        hint = "" if error.hint is None else f"\n  hint: {error.hint}"
        sys.stderr.write(f"pincite serve index: {error.message}{hint}\n")
        return 2 if isinstance(error, SettingsError) else 4
    return 0


def _options(arguments: argparse.Namespace) -> ServerOptions:
    api_key = os.environ.get(KEY_VARIABLE) or None
    if arguments.no_auth:
        api_key = None
    elif api_key is None:
        raise SettingsError(
            f"{KEY_VARIABLE} is not set",
            hint="set it to a random secret, or say --no-auth for an open server on loopback",
        )
    return ServerOptions(
        data_dir=arguments.data_dir,
        host=arguments.host,
        port=arguments.port,
        api_key=api_key,
        allowed_hosts=tuple(arguments.allowed_host),
        search_threads=arguments.search_threads,
    )


if __name__ == "__main__":
    sys.exit(main())
