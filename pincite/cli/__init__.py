"""The command line. stdout is data, stderr is talk.

Knows nothing of how things are done: it calls the REST API, the supervisor or a server's entry.
"""

from pincite.cli.app import main

__all__ = ["main"]
