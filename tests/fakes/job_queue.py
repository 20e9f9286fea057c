"""A queue that remembers what was published, and can lose it."""

from collections import Counter

from core.domain.documents import Queue
from core.errors import BrokerUnavailable
from core.ports.job_queue import BrokerDepth


class FakeJobQueue:
    """`is_down`: publishing raises. Messages are taken by the test."""

    def __init__(self) -> None:
        self.published: list[tuple[Queue, str]] = []
        self.is_down = False

    def publish(self, queue: Queue, part_id: str) -> None:
        if self.is_down:
            raise BrokerUnavailable("the broker does not answer")
        self.published.append((queue, part_id))

    def depth(self) -> BrokerDepth:
        if self.is_down:
            raise BrokerUnavailable("the broker does not answer")
        found = Counter(queue for queue, _ in self.published)
        return BrokerDepth({queue: found[queue] for queue in Queue}, 0)

    def check(self) -> None:
        if self.is_down:
            raise BrokerUnavailable("the broker does not answer")

    def take(self) -> list[str]:
        """Every part id published so far; the queue is empty afterwards."""
        taken = [part_id for _, part_id in self.published]
        self.published = []
        return taken
