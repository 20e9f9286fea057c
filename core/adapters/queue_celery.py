"""`JobQueue` on Celery, and the one list of broker settings that both ends use.

The settings are those of the design (Redis-only ones only for a Redis or Valkey broker); the
reasons are in docs/decisions/0006. There is no result backend: what became of a part is in the
catalog."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery import Celery
from kombu.entity import Exchange
from kombu.entity import Queue as KombuQueue
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from core.domain.documents import Queue
from core.errors import BrokerUnavailable, SettingsError
from core.ports.job_queue import BrokerDepth

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK_NAME = "pincite.run_part"
KEY_PREFIX = "pincite:"
_REDIS_SCHEMES = ("redis://", "rediss://", "valkey://", "valkeys://")
_PUBLISH_RETRIES = 2

_CELERY_SETTINGS: dict[str, Any] = {
    "task_acks_late": True,
    "task_ignore_result": True,
    "task_serializer": "json",
    "accept_content": ["json"],
    "worker_prefetch_multiplier": 1,
    "task_time_limit": 300,
    "worker_soft_shutdown_timeout": 25,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "worker_cancel_long_running_tasks_on_connection_loss": True,
    "task_create_missing_queues": False,
    "worker_hijack_root_logger": False,
    "worker_eta_task_limit": 1000,
}
_REDIS_SETTINGS: dict[str, Any] = {
    "worker_disable_prefetch": True,
    "broker_transport_options": {
        "visibility_timeout": 900,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 30,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": KEY_PREFIX,
    },
}


def create_celery(broker_url: str) -> Celery:
    """A Celery application with the frozen settings; connects to nothing yet."""
    app = Celery("pincite", broker=broker_url, set_as_current=False, fixups=[])
    app.conf.update(_CELERY_SETTINGS)
    if is_redis(broker_url):
        app.conf.update(_REDIS_SETTINGS)
    exchange = Exchange("pincite", type="direct")  # type: ignore[no-untyped-call]
    app.conf.task_queues = [
        KombuQueue(queue.value, exchange, routing_key=queue.value)  # type: ignore[no-untyped-call]
        for queue in Queue
    ]
    app.conf.task_default_queue = Queue.BULK.value
    app.conf.task_default_exchange = exchange.name
    app.conf.task_default_routing_key = Queue.BULK.value
    return app


def is_redis(broker_url: str) -> bool:
    return broker_url.startswith(_REDIS_SCHEMES)


class CeleryJobQueue:
    """See `core.ports.job_queue.JobQueue`. Safe in threads; connects at the first use."""

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url
        self._app = create_celery(broker_url)
        self._lock = threading.Lock()

    def publish(self, queue: Queue, part_id: str) -> None:
        with _translated():
            self._app.send_task(
                TASK_NAME,
                args=[part_id],
                queue=queue.value,
                retry=True,
                retry_policy={"max_retries": _PUBLISH_RETRIES, "interval_start": 0.1},
            )

    def depth(self) -> BrokerDepth:
        with _translated(), self._app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=_PUBLISH_RETRIES, interval_start=0.1)
            channel = connection.default_channel
            # Declared, not passively asked: before the first worker there is no queue to ask.
            queues = self._app.amqp.queues
            ready = {
                queue: int(queues[queue.value](channel).queue_declare().message_count)
                for queue in Queue
            }
            unacked = (
                int(channel.client.hlen(channel.unacked_key))
                if is_redis(self._broker_url)
                else None
            )
            return BrokerDepth(ready, unacked)

    def check(self) -> None:
        if not is_redis(self._broker_url):
            return
        with _translated(), self._app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=_PUBLISH_RETRIES, interval_start=0.1)
            found = connection.default_channel.client.info("memory").get("maxmemory_policy")
        if found not in {None, "noeviction"}:
            raise SettingsError(
                f"the broker's maxmemory-policy is '{found}': it drops messages when it is full",
                hint="give Pincite a Redis or Valkey of its own with maxmemory-policy noeviction",
            )

    def close(self) -> None:
        """Ends the connections; the queue can still be used and connects again."""
        with self._lock:
            self._app.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (KombuError, RedisError, OSError) as error:
        # The message may carry the broker's address: only its type is told.
        raise BrokerUnavailable(f"the broker did not answer ({type(error).__name__})") from error
