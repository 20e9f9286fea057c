"""Requests written to a socket by hand, for what an HTTP client would not do."""

import json
import socket
from typing import Any

WAIT_S = 20.0


def request_head(path: str, secret: str, **headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {secret}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def ask(connection: socket.socket, secret: str, **body: Any) -> None:
    content = json.dumps({"question": "How often?", **body}).encode()
    head = request_head(
        "/v1/answers", secret, Content_Type="application/json", Content_Length=str(len(content))
    )
    connection.sendall(head + content)


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        piece = connection.recv(65_536)
        assert piece, found
        found += piece
    return found
