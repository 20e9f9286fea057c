"""Whether a server answers: one short question each, never an exception."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TIMEOUT_S = 1.0


def http_answers(port: int, path: str, statuses: tuple[int, ...] = (200,)) -> bool:
    """Whether a loopback HTTP server gives one of these statuses."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status in statuses
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def valkey_answers(port: int, password: str) -> bool:
    """Whether Valkey takes our password and has finished loading its append-only file."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            reply = b""
            while reply.count(b"\r\n") < 2:
                piece = connection.recv(1024)
                if not piece:
                    break
                reply += piece
            return reply.endswith(b"+PONG\r\n")
    except OSError:
        return False


def file_is_newer(path: Path, than_s: float) -> Callable[[], bool]:
    """A check that a liveness file was touched after a moment (seconds since the epoch)."""

    def check() -> bool:
        try:
            return path.stat().st_mtime >= than_s
        except OSError:
            return False

    return check
