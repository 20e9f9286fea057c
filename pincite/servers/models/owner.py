"""The thread that owns the model: loads it, and is the only one that runs it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from core.domain.search import EmbedderInfo
from pincite.servers.models.errors import BackendFailed
from pincite.servers.models.freed_memory import give_back_freed
from pincite.servers.models.queueing import BatchItem, WorkQueue

log = logging.getLogger(__name__)


class TextEncoder(Protocol):
    """What the owner runs; `core.adapters.embed_local.LocalEmbedder` is one."""

    prompts: dict[str, str]
    device: str
    precision: str

    def info(self) -> EmbedderInfo: ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Safe in any thread."""

    def encode(self, texts: Sequence[str], prompt_name: str | None = None) -> list[list[float]]:
        """Called by the owner only."""


class ModelOwner:
    """Args: how to load the model (called in the owner's thread), where batches come from,
    who is told of each batch (items, seconds), and what is done, once, in a pause of `idle_s`."""

    def __init__(
        self,
        load: Callable[[], TextEncoder],
        queue: WorkQueue,
        observe: Callable[[list[BatchItem], float], None],
        *,
        on_idle: Callable[[], object] = give_back_freed,
        idle_s: float = 2.0,
    ) -> None:
        self._load = load
        self._queue = queue
        self._observe = observe
        self._on_idle = on_idle
        self._idle_s = idle_s
        self._thread = threading.Thread(target=self._run, name="model-owner", daemon=True)
        self._loaded: Future[TextEncoder] = Future()

    def start(self) -> TextEncoder:
        """Load the model and wait for it. Raises what loading raised."""
        self._thread.start()
        return self._loaded.result()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Finish the batch that runs and end; what waits fails."""
        self._queue.close()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            encoder = self._load()
        except BaseException as error:  # noqa: BLE001 - handed to whoever called start()
            self._loaded.set_exception(error)
            return
        self._loaded.set_result(encoder)
        wait_s: float | None = self._idle_s
        while (batch := self._queue.take(wait_s)) is not None:
            if batch:
                self._serve(encoder, batch)
                wait_s = self._idle_s
            else:
                self._on_idle()
                wait_s = None

    def _serve(self, encoder: TextEncoder, batch: list[BatchItem]) -> None:
        started = time.perf_counter()
        try:
            vectors = encoder.encode([item.text for item in batch], batch[0].job.prompt_name)
        except Exception as error:  # the edge: one bad batch must not end the process
            log.exception("models.batch_failed", extra={"num_texts": len(batch)})
            for job in {item.job for item in batch}:
                job.fail(BackendFailed(f"the model failed: {type(error).__name__}"))
            return
        seconds = time.perf_counter() - started
        for item, vector in zip(batch, vectors, strict=True):
            item.job.receive(item.position, vector)
        self._queue.record_speed(sum(item.num_tokens for item in batch), seconds)
        self._observe(batch, seconds)
