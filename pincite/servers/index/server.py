"""Running the index server as a process: bind, serve, stop cleanly on SIGTERM or SIGINT."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from core.errors import SettingsError
from core.logging import get_logger
from pincite.servers.index.access import LOOPBACK_NAMES, Access, is_loopback
from pincite.servers.index.app import build_app
from pincite.servers.index.store import IndexStore

GRACE_S = 5
_log = get_logger(__name__)


@dataclass(frozen=True)
class ServerOptions:
    """How to serve.

    Attributes:
        data_dir: owned by this process alone while it runs.
        host, port: where to listen.
        api_key: the key clients must send; None = no key, on loopback only.
        allowed_hosts: further names accepted in the Host header.
        search_threads: threads per shard, None = one per processor.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 6333
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    search_threads: int | None = None

    def access(self) -> Access:
        """The access rules. Raises SettingsError for an open server on a reachable address."""
        loopback = is_loopback(self.host)
        if self.api_key is None and not loopback:
            raise SettingsError(
                f"refusing to serve the index on {self.host} without an API key",
                hint="set PINCITE_INDEX__API_KEY, or bind to 127.0.0.1",
            )
        names = LOOPBACK_NAMES | {self.host, *self.allowed_hosts}
        restricted = loopback or bool(self.allowed_hosts)
        return Access(self.api_key, names if restricted else None, open_metrics=loopback)


def serve(options: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT; on return every shard is flushed and closed.

    Raises SettingsError, IndexOwned or BrokenRegistry before anything listens.
    """
    access = options.access()
    store = IndexStore.open(options.data_dir, search_threads=options.search_threads)
    config = uvicorn.Config(
        build_app(lambda: store, access),
        host=options.host,
        port=options.port,
        workers=1,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    _log.info("index.serving", host=options.host, port=options.port, collections=len(store.names))
    try:
        with _quiet_signals():
            uvicorn.Server(config).run()
    finally:
        store.close()
        _log.info("index.stopped")


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """uvicorn raises the signal again after it has stopped, for the handlers that were there
    before it. With these, a clean stop ends with status 0 instead of death by signal."""
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return None
