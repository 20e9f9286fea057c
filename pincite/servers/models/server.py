"""Running the model server as a process: load, bind, serve, stop cleanly on SIGTERM or SIGINT."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from core.adapters.embed_local import LocalEmbedder
from core.errors import SettingsError
from core.settings import ModelsSettings
from pincite.servers.models.access import LOOPBACK_NAMES, Access, is_loopback
from pincite.servers.models.app import Service, create_app
from pincite.servers.models.metrics import ModelsMetrics
from pincite.servers.models.owner import ModelOwner, TextEncoder
from pincite.servers.models.queueing import Limits, WorkQueue

GRACE_S = 5
# A GPU is through with these before a question notices.
_GPU_LIMITS = Limits(max_batch_passages=64, max_batch_tokens=64 * 256)


@dataclass(frozen=True)
class ServerOptions:
    """How to serve. Of the settings, `api_key`, `device`, `precision`, `threads` and
    `max_batch_passages` are used."""

    model_dir: Path
    settings: ModelsSettings
    host: str = "127.0.0.1"
    port: int = 8080
    allowed_hosts: tuple[str, ...] = ()

    def access(self) -> Access:
        """Raises SettingsError for an open server on a reachable address."""
        loopback = is_loopback(self.host)
        api_key = self.settings.api_key.get_secret_value() or None
        if api_key is None and not loopback:
            raise SettingsError(
                f"refusing to serve models on {self.host} without an API key",
                hint="set PINCITE_MODELS__API_KEY, or bind to 127.0.0.1",
            )
        names = LOOPBACK_NAMES | {self.host, *self.allowed_hosts}
        restricted = loopback or bool(self.allowed_hosts)
        return Access(api_key, names if restricted else None, open_metrics=loopback)


def serve(options: ServerOptions) -> None:
    """Load the model, then listen until SIGTERM or SIGINT.

    Raises SettingsError, NotFound or InvalidInput before anything listens.
    """
    access = options.access()
    service = load_service(options)
    config = uvicorn.Config(
        create_app(service, access),
        host=options.host,
        port=options.port,
        workers=1,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    try:
        _Server(config).run()
    finally:
        service.owner.stop()


def load_service(options: ServerOptions) -> Service:
    """The model in its own thread, ready to answer."""
    settings = options.settings
    limits = Limits(max_batch_passages=settings.max_batch_passages)
    queue = WorkQueue(limits)
    metrics = ModelsMetrics(queue)

    def load() -> TextEncoder:
        return LocalEmbedder(
            options.model_dir,
            device=settings.device,
            threads=settings.threads,
            precision=settings.precision,
            max_batch=_GPU_LIMITS.max_batch_passages,  # the queue cuts the batches
        )

    owner = ModelOwner(load, queue, metrics.record_batch)
    encoder = owner.start()
    if encoder.device == "cuda":
        queue.limits = limits = _GPU_LIMITS
    return Service(encoder, owner, queue, limits, metrics)


class _Server(uvicorn.Server):
    """uvicorn raises a signal again after it has stopped; a clean stop should end with status 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
