"""`python -m pincite.servers.models --model-dir D --host 127.0.0.1 --port P`.

The API key, device, precision and threads come from the environment (PINCITE_MODELS__API_KEY, ...),
like all settings. Exit status: 0 stopped cleanly, 2 wrong usage, 4 the model cannot be loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.errors import PinciteError, SettingsError
from core.settings import load_settings


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pincite serve models", description=__doc__)
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--allowed-host", action="append", default=[], metavar="NAME")
    parser.add_argument("--no-auth", action="store_true", help="serve without an API key")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _arguments(argv)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        loaded = load_settings()
        settings = loaded.models
        if arguments.no_auth:
            settings = settings.model_copy(update={"api_key": type(settings.api_key)("")})
        elif not settings.api_key.get_secret_value():
            raise SettingsError(
                "PINCITE_MODELS__API_KEY is not set",
                hint="set it to a random secret, or say --no-auth for an open server on loopback",
            )
        # After the thread settings: importing the server imports torch.
        os.environ.setdefault("OMP_NUM_THREADS", str(settings.threads))
        os.environ.setdefault("MKL_NUM_THREADS", str(settings.threads))
        # Threads that spin at each barrier take the cores from the processes beside this one.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        from core.logging import setup_logging
        from pincite import __version__
        from pincite.model_store import check_model
        from pincite.servers.models.server import ServerOptions, serve

        setup_logging(
            level=loaded.log.level,
            style=loaded.log.format,
            service="models",
            version=__version__,
            stream=sys.stderr,
        )
        check_model(arguments.model_dir)
        serve(
            ServerOptions(
                arguments.model_dir,
                settings,
                arguments.host,
                arguments.port,
                tuple(arguments.allowed_host),
            )
        )
    except PinciteError as error:
        hint = "" if error.hint is None else f"\n  hint: {error.hint}"
        sys.stderr.write(f"pincite serve models: {error.message}{hint}\n")
        return 2 if isinstance(error, SettingsError) else 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
