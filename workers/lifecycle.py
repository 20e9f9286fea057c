"""The worker process: `run_worker` starts it and returns when it was told to stop.

On SIGTERM (or SIGINT) the pool's children are told through shared memory, hand their parts back at
the next page or batch, and the worker ends as soon as none is busy, at the latest after Celery's
soft shutdown time. What is killed outright is found by the catalog's leases."""

from __future__ import annotations

import json
import multiprocessing
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import BrokerUnavailable, InternalError, PinciteError, error_classes
from core.factory import Adapters
from core.logging import get_logger, setup_logging

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from core.settings import Settings

LIVENESS_FILE = "worker.alive"

_log = get_logger(__name__)


def run_worker(settings: Settings) -> int:
    """Work until told to stop; the exit status.

    Raises, rather than have every document fail: SettingsError for a broker that may lose
    messages, NotFound when the embedder's tokenizer is not on this machine, CatalogUnavailable
    when the schema cannot be brought up to date."""
    # Celery reads it when it is imported: a supervisor's SIGTERM then means "finish softly".
    os.environ.setdefault("REMAP_SIGTERM", "SIGQUIT")
    from workers.pool import start_pool

    setup_logging(level=settings.log.level, style=settings.log.format, service="worker")
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_apart(settings)
    _log.info("worker.starting", concurrency=settings.worker.concurrency)
    return start_pool(settings, settings.data_dir / LIVENESS_FILE)


def check_apart(settings: Settings) -> None:
    """Check in a process of its own, since the libraries for it would stay in the main one, which
    only hands out work: 40 MB, and again in each child. Raises what the check raises."""
    forked = multiprocessing.get_context("fork")
    receiver, sender = forked.Pipe(duplex=False)
    process = forked.Process(target=_check, args=(settings, sender), name="check")
    process.start()
    sender.close()
    try:
        told: dict[str, str | None] = json.loads(receiver.recv_bytes())
    except EOFError as ended:
        raise InternalError("the worker's check ended before it was done; see its log") from ended
    finally:
        receiver.close()
        process.join()
    if told:
        by_code = {kind.code: kind for kind in reversed(list(error_classes()))}
        raise by_code[str(told["code"])](str(told["message"]), hint=told["hint"])


def _check(settings: Settings, sender: Connection) -> None:
    adapters = Adapters(settings)
    try:
        adapters.catalog.migrate()
        _log.debug("tokenizer.found", num_special_tokens=adapters.token_counter.num_special_tokens)
        with suppress(BrokerUnavailable):  # Celery waits for it, and says so
            adapters.job_queue.check()
    except PinciteError as error:
        told = {"code": error.code, "message": error.message, "hint": error.hint}
        sender.send_bytes(json.dumps(told).encode())
    else:
        sender.send_bytes(b"{}")
    finally:
        adapters.close()
