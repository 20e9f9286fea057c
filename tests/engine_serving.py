"""The engine's server behind a real socket on loopback, in a thread of this process, as it is
served in production, around a fake engine."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from engine.config import EngineConfig
from engine.server.loaded import LoadedEngine
from engine.server.options import ServerOptions
from engine.server.process import EngineServer, make_server
from engine.server.service import Service
from tests.fakes.engine_core import FakeEngine, loaded_fake
from tests.stack import wait_until

INTERNAL_KEY = "the-internal-key"
FURTHER_KEYS = ("key-of-alice", "key-of-bob")
MODEL = "fake"
_STOP_S = 30.0
OPTIONS = ServerOptions(
    config=EngineConfig(model=Path("unused")),
    model_name=MODEL,
    host="127.0.0.1",
    port=0,
    internal_key=INTERNAL_KEY,
    further_keys=FURTHER_KEYS,
    stop_grace_s=0.2,
)


@dataclass(frozen=True)
class ServedEngine:
    """`url` has no slash at its end."""

    port: int
    engine: FakeEngine
    server: EngineServer
    service: Service

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def http(self, key: str | None = INTERNAL_KEY) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=20)

    def metric(self, name: str, **labels: str) -> float:
        """One sample of `/metrics`."""
        with self.http(None) as client:
            return metric(client.get("/metrics").text, name, **labels)

    def wait_idle(self) -> None:
        """Until nothing runs, waits or holds a block, as `/metrics` tells it."""
        names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
        wait_until(
            lambda: not any(self.metric(f"pincite_engine_{name}") for name in names),
            timeout_s=20,
            what="an idle engine",
        )

    def wait_for(self, name: str, value: float) -> None:
        """Until a gauge has this value."""
        wait_until(
            lambda: self.metric(f"pincite_engine_{name}") == value,
            timeout_s=20,
            what=f"{name} = {value}",
        )


def metric(exposition: str, name: str, **labels: str) -> float:
    """The value of a sample by name and (some of) its labels. Raises LookupError."""
    for line in exposition.splitlines():
        match = re.fullmatch(r"([a-zA-Z0-9_:]+)(?:\{(.*)\})? (\S+)", line)
        if match is None or match[1] != name:
            continue
        found = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
        if labels.items() <= found.items():
            return float(match[3])
    raise LookupError(f"{name} {labels}")


@contextmanager
def serving_engine(
    engine: FakeEngine | None = None,
    *,
    load: Callable[[EngineConfig], LoadedEngine] | None = None,
    is_ready: bool = True,
    **changes: object,
) -> Iterator[ServedEngine]:
    """Serve until the block ends.

    Args:
        engine: the fake; a new one when not given.
        load: what loads it, instead of at once.
        is_ready: wait until it is loaded.
        changes: of the options.
    """
    fake = engine or FakeEngine()
    options = replace(OPTIONS, **changes)  # type: ignore[arg-type]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server, service = make_server(options, load or (lambda _: loaded_fake(fake)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        served = ServedEngine(int(listener.getsockname()[1]), fake, server, service)
        try:
            wait_until(
                lambda: server.started or not thread.is_alive(), timeout_s=20, what="uvicorn"
            )
            if is_ready:
                wait_until(lambda: service.was_loaded, timeout_s=20, what="the engine")
            yield served
        finally:
            fake.release()
            server.should_exit = True
            thread.join(_STOP_S)
            assert not thread.is_alive(), "the server did not stop"
