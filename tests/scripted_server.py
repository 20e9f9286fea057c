"""An HTTP server on a real socket that says what a test tells it to, byte by byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_STOP_S = 10.0


@dataclass(frozen=True)
class Received:
    """A request; `body` as JSON, None without one."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Connection:
    """The server's end of one request."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self.was_left = threading.Event()

    def send(self, data: bytes) -> None:
        self._stream.sendall(data)

    def answer(self, status: int, body: Any, **headers: str) -> None:
        """A whole response of JSON, or of bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(content)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + content)

    def begin_events(self) -> None:
        """The head of a stream that ends with its connection."""
        self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )

    def event(self, data: Any) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.send(f"data: {text}\n\n".encode())

    def wait_for_leaving(self) -> None:
        """Until the client closes its end."""
        with suppress(OSError):
            while self._stream.recv(1_000):
                pass
        self.was_left.set()

    def reset(self) -> None:
        """End the connection as a killed process does."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._stream.close()


Respond = Callable[[Received, Connection], None]


@dataclass
class ScriptedServer:
    """`respond` is called in a thread for each request."""

    respond: Respond
    url: str = ""
    requests: list[Received] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def of_path(self, path: str) -> list[Received]:
        return [request for request in self.requests if request.path == path]


@contextmanager
def scripted(respond: Respond) -> Iterator[ScriptedServer]:
    """Serve until the block ends."""
    found = ScriptedServer(respond)
    threads: list[threading.Thread] = []
    streams: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def accept() -> None:
            while True:
                try:
                    stream, _ = listener.accept()
                except OSError:
                    return
                streams.append(stream)
                threads.append(threading.Thread(target=_serve, args=(found, stream)))
                threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join(_STOP_S)
            for stream in streams:
                with suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(_STOP_S)
                assert not thread.is_alive()


def _serve(server: ScriptedServer, stream: socket.socket) -> None:
    with stream, suppress(OSError):
        request = _read(stream)
        if request is None:
            return
        connection = Connection(stream)
        server.requests.append(request)
        server.connections.append(connection)
        server.respond(request, connection)
        stream.shutdown(socket.SHUT_WR)


def _read(stream: socket.socket) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = stream.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += stream.recv(65_536)
    method, path, _ = first.split(" ")
    return Received(method, path, headers, json.loads(body) if body else None)
