"""The frozen broker settings, asserted on live applications (docs/decisions/0006)."""

import pytest

from core.adapters.queue_celery import CeleryJobQueue, create_celery
from core.domain.documents import Queue
from core.errors import BrokerUnavailable
from tests.stack import free_ports

FROZEN = {
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
FROZEN_FOR_REDIS = {
    "worker_disable_prefetch": True,
    "broker_transport_options": {
        "visibility_timeout": 900,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 30,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": "pincite:",
    },
}
# What Celery does when nobody says otherwise, and we rely on.
LEFT_ALONE = {
    "task_reject_on_worker_lost": None,
    "task_always_eager": False,
    "worker_enable_soft_shutdown_on_idle": False,
    "result_backend": None,
    "task_soft_time_limit": None,
    "worker_max_tasks_per_child": None,
}


@pytest.mark.parametrize("url", ["redis://:secret@localhost:1/0", "rediss://localhost:1/0"])
def test_a_redis_broker_has_exactly_the_frozen_settings(url: str) -> None:
    app = create_celery(url)
    expected = FROZEN | FROZEN_FOR_REDIS | LEFT_ALONE
    assert {name: app.conf[name] for name in expected} == expected
    changed = {name for name in app.conf.changes if name in app.conf.defaults[0]}
    assert not {name for name in changed if name.startswith("worker_")} - set(expected)


def test_another_broker_gets_no_redis_options() -> None:
    app = create_celery("amqp://localhost:1//")
    expected = FROZEN | LEFT_ALONE
    assert {name: app.conf[name] for name in expected} == expected
    assert app.conf.worker_disable_prefetch is False
    assert app.conf.broker_transport_options == {}


def test_there_are_two_queues_and_no_other() -> None:
    app = create_celery("redis://localhost:1/0")
    assert {queue.name for queue in app.conf.task_queues} == {queue.value for queue in Queue}
    assert app.conf.task_default_queue in {queue.value for queue in Queue}


def test_no_broker_is_unavailability_and_tells_no_password() -> None:
    (port,) = free_ports(1)
    queue = CeleryJobQueue(f"redis://:canary@127.0.0.1:{port}/0")
    for attempt in (
        lambda: queue.publish(Queue.BULK, "part_x"),
        queue.depth,
        queue.check,
    ):
        with pytest.raises(BrokerUnavailable) as raised:
            attempt()
        assert "canary" not in raised.value.message
    queue.close()
