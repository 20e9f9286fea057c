"""What every `JobQueue` promises, on the fake and on a real Valkey."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import redis

from core.adapters.queue_celery import CeleryJobQueue
from core.domain.documents import Queue
from core.errors import BrokerUnavailable, SettingsError
from core.ports.job_queue import JobQueue
from tests import stack
from tests.fakes.job_queue import FakeJobQueue


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Broker]:
    found = stack.valkey(tmp_path_factory.mktemp("valkey"))
    found.server.start()
    yield found
    found.server.kill()


@pytest.fixture(params=["fake", "valkey"])
def queue(request: pytest.FixtureRequest, broker: stack.Broker) -> Iterator[JobQueue]:
    if request.param == "fake":
        yield FakeJobQueue()
        return
    with redis.Redis.from_url(broker.url) as client:
        client.flushdb()
    celery = CeleryJobQueue(broker.url)
    yield celery
    celery.close()


def test_an_empty_queue_is_known_to_be_empty(queue: JobQueue) -> None:
    depth = queue.depth()
    assert depth.ready == {Queue.INTERACTIVE: 0, Queue.BULK: 0}
    assert depth.unacked == 0


def test_each_queue_counts_its_own_messages(queue: JobQueue) -> None:
    for number in range(3):
        queue.publish(Queue.BULK, f"part_{number}")
    queue.publish(Queue.INTERACTIVE, "part_x")
    queue.publish(Queue.INTERACTIVE, "part_x")  # twice is allowed
    assert queue.depth().ready == {Queue.INTERACTIVE: 2, Queue.BULK: 3}


def test_a_sound_broker_passes_its_check(queue: JobQueue) -> None:
    queue.check()


def test_a_broker_that_drops_messages_is_refused(broker: stack.Broker) -> None:
    queue = CeleryJobQueue(broker.url)
    with redis.Redis.from_url(broker.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(SettingsError, match="allkeys-lru"):
            queue.check()
        client.config_set("maxmemory-policy", "noeviction")
    queue.check()
    queue.close()


def test_messages_outlive_a_killed_broker(broker: stack.Broker) -> None:
    """What is acknowledged for a second or more is on disk; the publisher connects again."""
    queue = CeleryJobQueue(broker.url)
    with redis.Redis.from_url(broker.url) as client:
        client.flushdb()
        queue.publish(Queue.BULK, "part_1")
        client.waitaof(1, 0, 5000)
    broker.server.kill()
    with pytest.raises(BrokerUnavailable):
        queue.publish(Queue.BULK, "part_2")
    broker.server.start()
    assert queue.depth().ready[Queue.BULK] == 1
    queue.publish(Queue.BULK, "part_2")
    assert queue.depth().ready[Queue.BULK] == 2
    queue.close()


def test_a_message_holds_the_id_and_no_address(broker: stack.Broker) -> None:
    queue = CeleryJobQueue(broker.url)
    with redis.Redis.from_url(broker.url) as client:
        client.flushdb()
        queue.publish(Queue.BULK, "part_only")
        (message,) = client.lrange("pincite:bulk", 0, -1)
    password = urlsplit(broker.url).password
    assert password
    assert b"pincite.run_part" in message
    assert password.encode() not in message
    queue.close()
