"""The application behind a real socket on loopback, served as in production."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from query.server import server_config
from query.services import Services
from tests.stack import wait_until

_STOP_S = 20.0


@dataclass(frozen=True)
class Served:
    """`url` has no slash at its end."""

    port: int
    server: uvicorn.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    @property
    def num_connections(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def serving(services: Services) -> Iterator[Served]:
    """Serve in a thread of this process until the block ends."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(server_config(services))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(
                lambda: server.started or not thread.is_alive(), timeout_s=20, what="uvicorn"
            )
            yield Served(int(listener.getsockname()[1]), server)
        finally:
            server.should_exit = True
            thread.join(_STOP_S)
            assert not thread.is_alive(), "the server did not stop"
