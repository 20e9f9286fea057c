"""Running the server as a process: listen at once, load meanwhile, stop in order.

On SIGTERM nothing new is taken; open streams get a few seconds, then they end with a typed error.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import uvicorn

from engine.errors import EngineError
from engine.server.access import make_access
from engine.server.app import create_app
from engine.server.loaded import load_engine
from engine.server.service import Service

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from engine.config import EngineConfig
    from engine.server.loaded import LoadedEngine
    from engine.server.options import ServerOptions

EXIT_FAILED: Final = 1
EXIT_NOT_LOADED: Final = 4
_LAST_WORDS_S: Final = 2


class EngineServer(uvicorn.Server):
    """Uvicorn, which tells the service before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, service: Service, stop_grace_s: float) -> None:
        super().__init__(config)
        self._service = service
        self._stop_grace_s = stop_grace_s
        service.on_failure = self._end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, then wait for what is open."""
        self._service.begin_stop(self._stop_grace_s)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn raises a signal again after it has stopped; a clean stop should end with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self) -> None:
        self.should_exit = True


def make_server(
    options: ServerOptions, load: Callable[[EngineConfig], LoadedEngine] = load_engine
) -> tuple[EngineServer, Service]:
    """Everything put together, not running yet. Raises InvalidRequest for a server that would be
    open to others without a key."""
    access = make_access(
        options.host, options.internal_key, options.further_keys, options.allowed_hosts
    )
    service = Service(
        options.model_name, partial(load, options.config), has_aliases=options.has_aliases
    )
    config = uvicorn.Config(
        create_app(service, access, options.limits),
        host=options.host,
        port=options.port,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(options.stop_grace_s) + _LAST_WORDS_S,
    )
    return EngineServer(config, service, options.stop_grace_s), service


def serve(options: ServerOptions) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. Raises what `make_server` raises."""
    server, service = make_server(options)
    server.run()
    if service.failure is None:
        return 0
    was_loaded = service.was_loaded
    reason = service.failure if isinstance(service.failure, EngineError) else repr(service.failure)
    sys.stderr.write(f"engine: {'failed' if was_loaded else 'cannot load the model'}: {reason}\n")
    return EXIT_FAILED if was_loaded else EXIT_NOT_LOADED
