"""What one request may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """
    max_body_bytes: of a request; a larger one is refused while it is read.
    body_s: within which a body has to come.
    heartbeat_s: of silence in a stream, after which a comment is sent, so that nobody in between
        takes the connection for dead.
    """

    max_body_bytes: int = 4 * 1024 * 1024
    body_s: float = 30.0
    heartbeat_s: float = 15.0
